// Settings as the command line gives them.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// "KEY=VALUE" texts, in order. Throws InvalidArgument for any other.
[[nodiscard]] Settings parse_assignments(const std::vector<std::string>& assignments);

}  // namespace halfscope
