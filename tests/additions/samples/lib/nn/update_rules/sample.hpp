// An update rule as a newcomer would add it: gradient descent without momentum, which keeps the last
// gradient.
#pragma once

#include <cstddef>

#include "lib/nn/update_rules/state_rounding.hpp"

namespace halfscope {

/// last = gradient; update = -learning_rate * last.
struct SampleStep {
  static constexpr std::size_t slots = 1;
  float learning_rate = 0;

  /// The step with its constant rounded.
  template <typename Round>
  struct Element {
    Round to;
    float rate;

    HALFSCOPE_HD Element(const SampleStep& step, Round round) : to(round), rate(round(step.learning_rate)) {}

    /// The update of a weight; `last` is its state.
    HALFSCOPE_HD float operator()(float gradient, float /*weight*/, float& last) const {
      last = to(gradient);
      return to(-rate * last);
    }
  };
};

}  // namespace halfscope
