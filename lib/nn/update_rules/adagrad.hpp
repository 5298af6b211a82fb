// Adagrad, of one weight.
#pragma once

#include <cmath>
#include <cstddef>

#include "lib/nn/update_rules/state_rounding.hpp"

namespace halfscope {

/// sum = sum + gradient^2; update = -learning_rate * gradient / (sqrt(sum) + epsilon).
/// Source: Duchi, Hazan & Singer, "Adaptive Subgradient Methods", JMLR 12, 2011, with epsilon as PyTorch has
/// it.
struct AdagradStep {
  static constexpr std::size_t slots = 1;
  float learning_rate = 0;
  float epsilon = 0;

  /// The step with its constants rounded.
  template <typename Round>
  struct Element {
    Round to;
    float rate, epsilon;

    HALFSCOPE_HD Element(const AdagradStep& step, Round round)
        : to(round), rate(round(step.learning_rate)), epsilon(round(step.epsilon)) {}

    /// The update of a weight; `sum` is its state.
    HALFSCOPE_HD float operator()(float gradient, float /*weight*/, float& sum) const {
      const float g = to(gradient);
      sum = to(sum + to(g * g));
      return to(-rate * to(g / to(to(std::sqrt(sum)) + epsilon)));
    }
  };
};

}  // namespace halfscope
