// Training steps that `halfscope bench` times.
#pragma once

#include "experiments/cli/bench/bench.hpp"

namespace halfscope {

/// A mixed-precision step beside one in FP32.
[[nodiscard]] BenchResult bench_training_step();
[[nodiscard]] BenchResult bench_training_step_of_words();

/// What tracking adds to a mixed-precision step in which every weight gradient, or every tensor, is counted
/// and recorded, in per cent of the same step untracked.
[[nodiscard]] BenchResult bench_tracked_weight_gradients();
[[nodiscard]] BenchResult bench_tracked_tensors();
/// The same of a language model, whose recurrent layer casts its tensors time step by time step.
[[nodiscard]] BenchResult bench_tracked_weight_gradients_of_words();
[[nodiscard]] BenchResult bench_tracked_tensors_of_words();

/// What all trackers add to a step on the device that each of them watches, of larger networks.
[[nodiscard]] BenchResult bench_cuda_tracked_images();
[[nodiscard]] BenchResult bench_cuda_tracked_words();

}  // namespace halfscope
