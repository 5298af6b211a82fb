// Adam with decoupled weight decay, of one weight.
#pragma once

#include <cstddef>

#include "lib/nn/update_rules/adam.hpp"

namespace halfscope {

/// Adam's update, less learning_rate * decay * weight.
/// Source: Loshchilov & Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, algorithm 2, with the
/// decay multiplied by the learning rate as PyTorch has it.
struct AdamwStep {
  static constexpr std::size_t slots = AdamStep::slots;
  AdamStep adam{};
  float decay = 0;

  /// The step with its constants rounded.
  template <typename Round>
  struct Element {
    AdamStep::Element<Round> adam;
    float shrink;

    HALFSCOPE_HD Element(const AdamwStep& step, Round round)
        : adam(step.adam, round), shrink(round(adam.rate * round(step.decay))) {}

    /// The update of a weight; `first` and `second` are its moments.
    HALFSCOPE_HD float operator()(float gradient, float weight, float& first, float& second) const {
      return adam.to(adam(gradient, weight, first, second) - adam.to(shrink * adam.to(weight)));
    }
  };
};

}  // namespace halfscope
