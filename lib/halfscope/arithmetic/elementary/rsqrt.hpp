// The reciprocal square root.
#pragma once

#include <cmath>

#include <halfscope/format/bits.hpp>

namespace halfscope {

/// 1 / sqrt(x), within 1.5 ulp and monotone: two operations that IEEE 754 defines to the bit. Infinities for
/// the zeros, with their sign; the quiet NaN below zero and for a NaN.
[[nodiscard]] HALFSCOPE_HD float rsqrt(float x) {
  const float result = 1.0f / std::sqrt(x);
  return x >= 0.0f ? result : from_bits(quiet_nan_bits);
}

}  // namespace halfscope
