// Training configuration of an arm: the experiment's settings, the arm's own and the size's, in that order.
#pragma once

#include "experiments/definition/experiment.hpp"

namespace halfscope {

/// Settings of `arm` at `size` before a request changes any. Throws InvalidArgument, naming the
/// arm, for an unknown key or a value out of range.
[[nodiscard]] TrainConfig arm_config(const Experiment& experiment, const Arm& arm, RunSize size);

}  // namespace halfscope
