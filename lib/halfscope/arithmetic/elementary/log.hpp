// The natural logarithm.
#pragma once

#include <halfscope/format/bits.hpp>

namespace halfscope {

/// Natural logarithm, within 0.83 ulp and monotone, for subnormal arguments too; -infinity for zeros,
/// infinity for infinity, the quiet NaN below zero and for a NaN.
[[nodiscard]] HALFSCOPE_HD float log(float x) {
  // 1. x = 2^e m with m in [sqrt(1/2), sqrt(2)); a subnormal number is made normal first.
  const bool subnormal = x < 0x1p-126f;
  const std::uint32_t shifted = to_bits(subnormal ? x * 0x1p23f : x) - 0x3F3504F3u;
  const float e = static_cast<float>(static_cast<std::int32_t>(shifted) >> 23) - (subnormal ? 23.0f : 0.0f);
  const float f = from_bits((shifted & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;
  // 2. log(1 + f) = f - f^2/2 + f^3 P(f).
  const float z = f * f;
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  float y = p * f * z;
  y = y + e * -2.12194440e-4f;
  y = y - 0.5f * z;
  const float result = (f + y) + e * 0.693359375f;
  // 3. Zero, infinity, and what has no logarithm.
  const float infinity = from_bits(infinity_bits);
  const float positive = x == infinity ? infinity : result;
  const float other = x == 0.0f ? -infinity : from_bits(quiet_nan_bits);
  return x > 0.0f ? positive : other;
}

}  // namespace halfscope
