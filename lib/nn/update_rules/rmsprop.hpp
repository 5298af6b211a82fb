// RMSProp with momentum, of one weight.
#pragma once

#include <cmath>
#include <cstddef>

#include "lib/nn/update_rules/state_rounding.hpp"

namespace halfscope {

/// square = decay * square + (1 - decay) * gradient^2;
/// velocity = momentum * velocity + learning_rate * gradient / sqrt(square + epsilon); update = -velocity.
/// Source: Tieleman & Hinton, "RMSProp", 2012, with momentum and epsilon where TensorFlow has them.
struct RmspropStep {
  static constexpr std::size_t slots = 2;
  float learning_rate = 0;
  float decay = 0, momentum = 0;
  float epsilon = 0;

  /// The step with its constants rounded.
  template <typename Round>
  struct Element {
    Round to;
    float decay, rest, momentum, rate, epsilon;

    HALFSCOPE_HD Element(const RmspropStep& step, Round round)
        : to(round),
          decay(round(step.decay)),
          rest(round(1.0f - step.decay)),
          momentum(round(step.momentum)),
          rate(round(step.learning_rate)),
          epsilon(round(step.epsilon)) {}

    /// The update of a weight; `square` and `velocity` are its state.
    HALFSCOPE_HD float operator()(float gradient, float /*weight*/, float& square, float& velocity) const {
      const float g = to(gradient);
      square = to(to(decay * square) + to(rest * to(g * g)));
      const float root = to(std::sqrt(to(square + epsilon)));
      velocity = to(to(momentum * velocity) + to(rate * to(g / root)));
      return -velocity;
    }
  };
};

}  // namespace halfscope
