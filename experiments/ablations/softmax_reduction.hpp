// The paper's third claim on softmax: its sum wants FP32.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// A GRU language model whose softmax adds up 4,096 exponentials in FP32, or one after the other in FP16.
[[nodiscard]] Experiment make_softmax_reduction();

}  // namespace halfscope
