// Which accumulation does training need? The same networks under every model of how matrix products add up.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// The classifier, and the table of sums and dot products against their length.
[[nodiscard]] Experiment make_accumulation_error();

}  // namespace halfscope
