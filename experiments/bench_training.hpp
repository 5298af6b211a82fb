// Training steps that `halfscope bench` times.
#pragma once

#include "experiments/bench.hpp"

namespace halfscope {

/// A mixed-precision step beside one in FP32.
[[nodiscard]] BenchResult bench_training_step();

/// What tracking adds to a mixed-precision step in which every weight gradient, or every tensor, is counted
/// and recorded, in per cent of the same step untracked.
[[nodiscard]] BenchResult bench_tracked_weight_gradients();
[[nodiscard]] BenchResult bench_tracked_tensors();

}  // namespace halfscope
