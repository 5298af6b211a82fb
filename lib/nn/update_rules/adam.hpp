// Adam, of one weight.
#pragma once

#include <cmath>
#include <cstddef>

#include "lib/nn/update_rules/state_rounding.hpp"

namespace halfscope {

/// first = beta1 * first + (1 - beta1) * gradient, second likewise of the square;
/// update = -learning_rate * (first / correction1) / (sqrt(second / correction2) + epsilon).
/// Source: Kingma & Ba, "Adam", ICLR 2015, algorithm 1; correction = 1 - beta^t.
struct AdamStep {
  static constexpr std::size_t slots = 2;
  float learning_rate = 0;
  float beta1 = 0, beta2 = 0;
  float correction1 = 1, correction2 = 1;
  float epsilon = 0;

  /// The step with its constants rounded.
  template <typename Round>
  struct Element {
    Round to;
    float beta1, beta2, rest1, rest2, rate, correction1, correction2, epsilon;

    HALFSCOPE_HD Element(const AdamStep& step, Round round)
        : to(round),
          beta1(round(step.beta1)),
          beta2(round(step.beta2)),
          rest1(round(1.0f - step.beta1)),
          rest2(round(1.0f - step.beta2)),
          rate(round(step.learning_rate)),
          correction1(round(step.correction1)),
          correction2(round(step.correction2)),
          epsilon(round(step.epsilon)) {}

    /// The update of a weight; `first` and `second` are its moments.
    HALFSCOPE_HD float operator()(float gradient, float /*weight*/, float& first, float& second) const {
      const float g = to(gradient);
      first = to(to(beta1 * first) + to(rest1 * g));
      second = to(to(beta2 * second) + to(rest2 * to(g * g)));
      const float root = to(std::sqrt(to(second / correction2)));
      const float direction = to(to(first / correction1) / to(root + epsilon));
      return to(-rate * direction);
    }
  };
};

}  // namespace halfscope
