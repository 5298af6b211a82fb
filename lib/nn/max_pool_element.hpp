// The arithmetic of a window of 2x2 max pooling, for the loops on the CPU and on the device.
#pragma once

#include <cstdint>

#include <halfscope/format/bits.hpp>

namespace halfscope {

/// The largest number of a window, and at which corner it is: 0..3, row by row, the first of equals. Numbers
/// are floats and integers, or vectors of them.
template <typename Float, typename Int>
struct WindowMaximum {
  Float value;
  Int corner;
};

/// Maximum of a window's corners, given in their order.
template <typename Int, typename Float>
[[nodiscard]] HALFSCOPE_HD WindowMaximum<Float, Int> window_maximum(Float a, Float b, Float c, Float d) {
  const Int zero{};
  const Float upper = b > a ? b : a, lower = d > c ? d : c;
  const Int upper_corner = b > a ? zero + 1 : zero, lower_corner = d > c ? zero + 3 : zero + 2;
  return {lower > upper ? lower : upper, lower > upper ? lower_corner : upper_corner};
}

/// The gradient of a corner from that of the window.
template <typename Int, typename Float>
[[nodiscard]] HALFSCOPE_HD Float corner_gradient(Float gradient, Int winner, std::int32_t corner) {
  return winner == Int{} + corner ? gradient : Float{};
}

}  // namespace halfscope
