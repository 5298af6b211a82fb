// StableAdamW: AdamW whose update of a tensor is clipped where its gradients outgrow their mean squares.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <halfscope/device/memory.hpp>
#include <halfscope/kernel/reduce/sum_of_squares.hpp>

#include "lib/nn/elementary.hpp"
#include "lib/nn/elementwise.hpp"
#include "lib/nn/strided_elementwise.hpp"
#include "sim/optim/adam.hpp"
#include "sim/optim/optimizers.hpp"
#include "sim/tape/filled.hpp"

namespace halfscope {
namespace {

/// Sum of the squares of an array of the active device, in double.
double sum_of_squares_of(std::span<const float> values) {
  Memory<double> lanes(sum_of_squares_lanes);
  const std::array arrays{values};
  sums_of_squares(arrays, 1, lanes.values());
  double sum = 0;
  for (const double lane : lanes.to_host()) sum += lane;
  return sum;
}

/// max(x, least), in place; a number far above `least` stays what it is.
void raise_to(float least, Array& x) {
  const Array floor = filled(x.shape(), least);
  combine(Combination::difference, x.view(), floor.view(), x.values());
  relu(x.view(), x.view());
  add(floor.view(), x.values());
}

/// The learning rate of a tensor is divided by its RMS of gradient / sqrt(mean square) where that is above 1
/// (Wortsman et al., "Stable and low-precision training for large-scale vision-language models", NeurIPS
/// 2023, algorithm 2, whose debiased decays are the correction of AdamW's moments).
class StableAdamw final : public Adam {
 public:
  using Adam::Adam;

 private:
  [[nodiscard]] UpdateRule rule(double learning_rate) const override { return adamw_step(learning_rate); }

  [[nodiscard]] ParameterStep parameter_step(std::size_t index, const WeightUpdate& update) override {
    AdamwStep own = std::get<AdamwStep>(step_rule());
    const double rms = root_mean_square(index, update, own.adam);
    own.adam.learning_rate = static_cast<float>(own.adam.learning_rate / std::max(1.0, rms));
    return {update, own};
  }

  /// Root of the mean of gradient^2 / max(second / correction2, epsilon^2), in FP32, with the second moment
  /// that the step is about to make.
  double root_mean_square(std::size_t index, const WeightUpdate& update, const AdamStep& adam) {
    const Array& second = slot(1, index);
    Array gradient(second.shape()), mean(second.shape()), square(second.shape());
    scale(update.gradient, update.unscale, gradient.values());
    scale(gradient.view(), update.clip, gradient.values());
    combine(Combination::product, gradient.view(), gradient.view(), square.values());
    scale(square.view(), (1 - adam.beta2) / adam.correction2, square.values());
    scale(second.view(), adam.beta2 / adam.correction2, mean.values());
    add(square.view(), mean.values());
    raise_to(std::max(adam.epsilon * adam.epsilon, std::numeric_limits<float>::min()), mean);
    apply(Elementary::rsqrt, mean.values(), mean.values());
    combine(Combination::product, gradient.view(), mean.view(), gradient.values());
    return std::sqrt(sum_of_squares_of(gradient.values()) / static_cast<double>(gradient.size()));
  }
};

}  // namespace

constexpr OptimizerKind stable_adamw_kind{
    make_as<StableAdamw>, {adam_beta1, adam_beta2, adam_epsilon, adam_weight_decay}, lint_adamw};

}  // namespace halfscope
