// The arithmetic of a window of 2x2 max pooling, for the loops on the CPU and on the device.
#pragma once

#include <cstdint>

#include <halfscope/format/bits.hpp>

namespace halfscope {

/// The largest number of a window, and at which corner it is: 0..3, row by row, the first of equals.
struct WindowMaximum {
  float value;
  std::uint8_t corner;
};

/// Of the corners in their order. No branch depends on the numbers, so that loops over it vectorise.
[[nodiscard]] HALFSCOPE_HD WindowMaximum window_maximum(float a, float b, float c, float d) {
  const bool right = b > a, bottom_right = d > c;
  const float upper = right ? b : a, lower = bottom_right ? d : c;
  const bool below = lower > upper;
  const int column = below ? bottom_right : right;  // a number: GCC does not vectorise a choice of bools
  return {below ? lower : upper, static_cast<std::uint8_t>(2 * below + column)};
}

/// The gradient of a corner from that of the window, by a mask: GCC makes branches of four choices in a row,
/// and of those stores that it reads again.
[[nodiscard]] HALFSCOPE_HD float corner_gradient(float gradient, std::uint8_t winner, int corner) {
  const std::uint32_t mask = 0u - static_cast<std::uint32_t>(winner == corner);
  return from_bits(to_bits(gradient) & mask);
}

}  // namespace halfscope
