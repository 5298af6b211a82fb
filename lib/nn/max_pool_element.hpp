// The arithmetic of a window of 2x2 max pooling, for the loops on the CPU and on the device.
#pragma once

#include <cstdint>

#include <halfscope/core/host_device.hpp>

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
  return {below ? lower : upper, static_cast<std::uint8_t>(below ? (bottom_right ? 3 : 2) : (right ? 1 : 0))};
}

/// The gradient of a corner from that of the window.
[[nodiscard]] HALFSCOPE_HD float corner_gradient(float gradient, std::uint8_t winner, int corner) {
  return winner == corner ? gradient : 0.0f;
}

}  // namespace halfscope
