// Finds the constants of a training run that die in the formats they are used in.
#pragma once

#include <string>
#include <vector>

#include "sim/optim/constant_lint.hpp"
#include "sim/train/run_settings.hpp"

namespace halfscope {

/// Effects of the run's formats on its constants: the optimizer's in the precision of its state, the loss
/// scale in that of activation gradients, and an update beside a weight where no master copy keeps it. Empty
/// where all of them survive, as in FP32. Constants whose arithmetic is FP32 in every policy (batch norm's
/// epsilon, clipping) are none of its business.
[[nodiscard]] std::vector<Finding> lint(const RunSettings& settings);

/// "epsilon = 1e-08 is 0 in fp16: CONSEQUENCE; REMEDY".
[[nodiscard]] std::string to_string(const Finding& finding);
[[nodiscard]] Json to_json(const Finding& finding);

}  // namespace halfscope
