// Muon, of one weight of a matrix.
#pragma once

#include <cstddef>

#include "lib/nn/update_rules/state_rounding.hpp"

namespace halfscope {

/// update = -learning_rate * gradient - learning_rate * decay * weight. The gradient is one that has been
/// made orthogonal, a function of the whole matrix; the matrix's momentum, the one slot, has been updated.
/// Source: Jordan et al., "Muon", 2024, with the decay multiplied by the learning rate as PyTorch has it.
struct MuonStep {
  static constexpr std::size_t slots = 1;
  float learning_rate = 0;
  float decay = 0;

  /// The step with its constants rounded.
  template <typename Round>
  struct Element {
    Round to;
    float rate, shrink;

    HALFSCOPE_HD Element(const MuonStep& step, Round round)
        : to(round), rate(round(step.learning_rate)), shrink(round(rate * round(step.decay))) {}

    HALFSCOPE_HD float operator()(float gradient, float weight, float& /*momentum*/) const {
      return to(to(-rate * to(gradient)) - to(shrink * to(weight)));
    }
  };
};

}  // namespace halfscope
