// The arithmetic of an optimizer's update of one weight, for the loops on the CPU and on the device.
#pragma once

#include <cmath>

#include <halfscope/format/round.hpp>

#include "lib/nn/optimizer_step.hpp"

namespace halfscope {

/// The roundings of optimizer state: none, and to a format.
struct Identity {
  HALFSCOPE_HD float operator()(float x) const { return x; }
};
struct RoundTo {
  Quantizer quantizer;
  HALFSCOPE_HD float operator()(float x) const { return round(x, quantizer); }
};

/// An SgdStep with its constants rounded.
template <typename Round>
struct SgdElement {
  Round to;
  float momentum, rate;

  HALFSCOPE_HD SgdElement(const SgdStep& step, Round round)
      : to(round), momentum(round(step.momentum)), rate(round(step.learning_rate)) {}

  /// The update of a weight; `velocity` is its state.
  HALFSCOPE_HD float operator()(float gradient, float& velocity) const {
    velocity = to(to(momentum * velocity) + to(gradient));
    return to(-rate * velocity);
  }
};

/// An AdamStep with its constants rounded.
template <typename Round>
struct AdamElement {
  Round to;
  float beta1, beta2, rest1, rest2, rate, correction1, correction2, epsilon;

  HALFSCOPE_HD AdamElement(const AdamStep& step, Round round)
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
  HALFSCOPE_HD float operator()(float gradient, float& first, float& second) const {
    const float g = to(gradient);
    first = to(to(beta1 * first) + to(rest1 * g));
    second = to(to(beta2 * second) + to(rest2 * to(g * g)));
    const float root = to(std::sqrt(to(second / correction2)));
    const float direction = to(to(first / correction1) / to(root + epsilon));
    return to(-rate * direction);
  }
};

/// A RmspropStep with its constants rounded.
template <typename Round>
struct RmspropElement {
  Round to;
  float decay, rest, momentum, rate, epsilon;

  HALFSCOPE_HD RmspropElement(const RmspropStep& step, Round round)
      : to(round),
        decay(round(step.decay)),
        rest(round(1.0f - step.decay)),
        momentum(round(step.momentum)),
        rate(round(step.learning_rate)),
        epsilon(round(step.epsilon)) {}

  /// The update of a weight; `square` and `velocity` are its state.
  HALFSCOPE_HD float operator()(float gradient, float& square, float& velocity) const {
    const float g = to(gradient);
    square = to(to(decay * square) + to(rest * to(g * g)));
    const float root = to(std::sqrt(to(square + epsilon)));
    velocity = to(to(momentum * velocity) + to(rate * to(g / root)));
    return -velocity;
  }
};

}  // namespace halfscope
