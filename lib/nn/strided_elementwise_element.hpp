// The arithmetic of combinations of two numbers, for the loops on the CPU and on the device.
#pragma once

#include <halfscope/core/host_device.hpp>

#include "lib/nn/strided_elementwise.hpp"

namespace halfscope {

template <Combination combination>
[[nodiscard]] HALFSCOPE_HD float combined(float a, float b) {
  if constexpr (combination == Combination::sum) return a + b;
  if constexpr (combination == Combination::difference) return a - b;
  if constexpr (combination == Combination::product) return a * b;
  if constexpr (combination == Combination::tanh_gradient) return a * (1.0f - b * b);
  if constexpr (combination == Combination::sigmoid_gradient) return a * (b * (1.0f - b));
}

/// body.operator()<combination>(): one that is known when the program runs, as a constant of the loops.
template <typename Body>
void with_combination(Combination combination, const Body& body) {
  switch (combination) {
    case Combination::sum:
      return body.template operator()<Combination::sum>();
    case Combination::difference:
      return body.template operator()<Combination::difference>();
    case Combination::product:
      return body.template operator()<Combination::product>();
    case Combination::tanh_gradient:
      return body.template operator()<Combination::tanh_gradient>();
    case Combination::sigmoid_gradient:
      return body.template operator()<Combination::sigmoid_gradient>();
  }
}

}  // namespace halfscope
