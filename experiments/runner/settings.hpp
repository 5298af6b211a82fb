// Settings as the command line gives them, and joined.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// "KEY=VALUE" texts, in order. Throws InvalidArgument for any other.
[[nodiscard]] Settings parse_assignments(const std::vector<std::string>& assignments);

/// `base` and then `changes`, which win where both have a key.
[[nodiscard]] Settings with(Settings base, const Settings& changes);

}  // namespace halfscope
