// The arithmetic of element-wise operations, for the loops on the CPU and on the device.
#pragma once

#include <cstdint>

#include <halfscope/format/bits.hpp>

namespace halfscope {

/// Whether a rectifier lets a number through, and with it its gradient. It stops NaNs.
[[nodiscard]] HALFSCOPE_HD bool passes_relu(float x) {
  return x > 0.0f;
}

[[nodiscard]] HALFSCOPE_HD float rectified(float x) {
  return passes_relu(x) ? x : 0.0f;
}

/// Gradient of a leaky rectifier, whose slope is `factor` where x is not positive. A number times 1 is
/// itself.
[[nodiscard]] HALFSCOPE_HD float scaled_unless_positive(float x, float factor, float value) {
  return value * (passes_relu(x) ? 1.0f : factor);
}

/// The larger of `largest`, a magnitude's bits, and the magnitude of x. As signed integers, since SSE2 and
/// AVX2 compare no others.
[[nodiscard]] HALFSCOPE_HD std::int32_t larger_magnitude(std::int32_t largest, float x) {
  const auto magnitude = static_cast<std::int32_t>(magnitude_bits(x));
  return largest > magnitude ? largest : magnitude;
}

}  // namespace halfscope
