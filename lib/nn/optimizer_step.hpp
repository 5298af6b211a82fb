// An optimizer's step: from a gradient and the optimizer's state to new weights, in one pass over the arrays.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <halfscope/device/device.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>
#include <halfscope/kernel/update/update_watch.hpp>

namespace halfscope {

/// velocity = momentum * velocity + gradient; update = -learning_rate * velocity.
struct SgdStep {
  float learning_rate = 0;
  float momentum = 0;
};

/// first = beta1 * first + (1 - beta1) * gradient, second likewise of the square;
/// update = -learning_rate * (first / correction1) / (sqrt(second / correction2) + epsilon).
/// Source: Kingma & Ba, "Adam", ICLR 2015, algorithm 1; correction = 1 - beta^t.
struct AdamStep {
  float learning_rate = 0;
  float beta1 = 0, beta2 = 0;
  float correction1 = 1, correction2 = 1;
  float epsilon = 0;
};

/// square = decay * square + (1 - decay) * gradient^2;
/// velocity = momentum * velocity + learning_rate * gradient / sqrt(square + epsilon); update = -velocity.
/// Source: Tieleman & Hinton, "RMSProp", 2012, with momentum and epsilon where TensorFlow has them.
struct RmspropStep {
  float learning_rate = 0;
  float decay = 0, momentum = 0;
  float epsilon = 0;
};

/// weights += the optimizer's update from gradient * unscale * clip.
struct WeightUpdate {
  std::span<const float> gradient;
  float unscale = 1, clip = 1;  ///< multiplied one after the other, each product rounded
  std::span<float> weights;
  /// One magnitude's bits, to be raised to the largest of the new weights: a NaN's are above infinity's.
  std::span<std::uint32_t> largest;
  std::optional<UpdateWatch> watch{};  ///< where the update is counted while it is made
};

/// All arrays have one size. `state` rounds the constants and every operation's result: with FP16 optimizer
/// state the arithmetic is FP16's too (and an epsilon of 1e-8 becomes 0). Watched updates are counted as
/// by `update_effect` and `update_ratios`.
void sgd_update(const WeightUpdate& update, const SgdStep& step, const Quantizer& state,
                std::span<float> velocity);
void adam_update(const WeightUpdate& update, const AdamStep& step, const Quantizer& state,
                 std::span<float> first_moment, std::span<float> second_moment);
void rmsprop_update(const WeightUpdate& update, const RmspropStep& step, const Quantizer& state,
                    std::span<float> square, std::span<float> velocity);

/// The same of arrays on the device, which the above call where that is the active one.
namespace cuda {
void sgd_update(const WeightUpdate& update, const SgdStep& step, const Quantizer& state,
                std::span<float> velocity);
void adam_update(const WeightUpdate& update, const AdamStep& step, const Quantizer& state,
                 std::span<float> first_moment, std::span<float> second_moment);
void rmsprop_update(const WeightUpdate& update, const RmspropStep& step, const Quantizer& state,
                    std::span<float> square, std::span<float> velocity);
}  // namespace cuda

/// Gradients and where the updates from them go, before they are added to the weights.
struct UpdateRun {
  const float* gradient;
  float unscale, clip;
  float* update;
  std::int64_t count;
};

template <Isa isa>
struct UpdateLoops {
  static void sgd(const UpdateRun& run, const SgdStep& step, const Quantizer& state, float* velocity);
  static void adam(const UpdateRun& run, const AdamStep& step, const Quantizer& state, float* first,
                   float* second);
  static void rmsprop(const UpdateRun& run, const RmspropStep& step, const Quantizer& state, float* square,
                      float* velocity);
};

}  // namespace halfscope
