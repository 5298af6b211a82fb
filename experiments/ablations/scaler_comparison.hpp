// Every loss scaler that trains, on two tasks that need one.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// The detector and the language model of the loss-scaling ablations, in FP32 and in FP16 under each scaler
/// with its own published defaults.
[[nodiscard]] Experiment make_scaler_comparison();

}  // namespace halfscope
