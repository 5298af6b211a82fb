// Training steps that `halfscope bench` times.
#pragma once

#include "experiments/cli/bench/bench.hpp"

namespace halfscope {

/// A mixed-precision step beside one in FP32.
[[nodiscard]] BenchResult bench_training_step();
[[nodiscard]] BenchResult bench_training_step_of_words();
/// A step under a recipe, such as mxfp8, beside one in FP32: of a language model, and of a transformer.
[[nodiscard]] BenchResult bench_recipe_of_words(std::string_view policy);
[[nodiscard]] BenchResult bench_recipe_of_translation(std::string_view policy);

/// Time that tracking adds to a mixed-precision step in which every weight gradient, or every tensor, is
/// counted and recorded, in per cent of the same step untracked.
[[nodiscard]] BenchResult bench_tracked_weight_gradients();
[[nodiscard]] BenchResult bench_tracked_tensors();
/// As above, for a language model, whose recurrent layer casts its tensors time step by time step.
[[nodiscard]] BenchResult bench_tracked_weight_gradients_of_words();
[[nodiscard]] BenchResult bench_tracked_tensors_of_words();

/// Time that all trackers add to a step on the device, each watching every step of a larger network.
[[nodiscard]] BenchResult bench_cuda_tracked_images();
[[nodiscard]] BenchResult bench_cuda_tracked_words();

}  // namespace halfscope
