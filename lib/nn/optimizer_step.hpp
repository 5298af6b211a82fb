// Optimizer arithmetic: from a gradient and the optimizer's state to the update that is added to a weight.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/device/device.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

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

/// All arrays have one size. `state` rounds the constants and every operation's result: with FP16 optimizer
/// state the arithmetic is FP16's too (and an epsilon of 1e-8 becomes 0).
void sgd_update(std::span<const float> gradient, const SgdStep& step, const Quantizer& state,
                std::span<float> velocity, std::span<float> update);
void adam_update(std::span<const float> gradient, const AdamStep& step, const Quantizer& state,
                 std::span<float> first, std::span<float> second, std::span<float> update);

/// The same of arrays on the device, which the above call where that is the active one.
namespace cuda {
void sgd_update(std::span<const float> gradient, const SgdStep& step, const Quantizer& state,
                std::span<float> velocity, std::span<float> update);
void adam_update(std::span<const float> gradient, const AdamStep& step, const Quantizer& state,
                 std::span<float> first, std::span<float> second, std::span<float> update);
}  // namespace cuda

template <Isa isa>
struct UpdateLoops {
  static void sgd(const float* gradient, const SgdStep& step, const Quantizer& state, float* velocity,
                  float* update, std::int64_t count);
  static void adam(const float* gradient, const AdamStep& step, const Quantizer& state,
                   float* const moments[2], float* update, std::int64_t count);
};

}  // namespace halfscope
