// Notes about formats that are mistaken for OCP's.
#pragma once

#include <vector>

#include <halfscope/format/float_format.hpp>

#include "experiments/run/plan.hpp"

namespace halfscope {

/// A note on stderr, once for a format, where OCP gives its bits another meaning.
void note_look_alike(const FloatFormat& format);

/// `note_look_alike` for every format of the runs' policies.
void note_look_alikes(const std::vector<PlannedRun>& runs);

}  // namespace halfscope
