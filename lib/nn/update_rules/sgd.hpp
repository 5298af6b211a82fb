// Stochastic gradient descent with momentum, of one weight.
#pragma once

#include <cstddef>

#include "lib/nn/update_rules/state_rounding.hpp"

namespace halfscope {

/// velocity = momentum * velocity + gradient; update = -learning_rate * velocity.
struct SgdStep {
  static constexpr std::size_t slots = 1;
  float learning_rate = 0;
  float momentum = 0;

  /// The step with its constants rounded.
  template <typename Round>
  struct Element {
    Round to;
    float momentum, rate;

    HALFSCOPE_HD Element(const SgdStep& step, Round round)
        : to(round), momentum(round(step.momentum)), rate(round(step.learning_rate)) {}

    /// The update of a weight; `velocity` is its state.
    HALFSCOPE_HD float operator()(float gradient, float /*weight*/, float& velocity) const {
      velocity = to(to(momentum * velocity) + to(gradient));
      return to(-rate * velocity);
    }
  };
};

}  // namespace halfscope
