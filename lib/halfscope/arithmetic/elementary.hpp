// exp, log and sqrt from plain additions and multiplications: the same bits on every machine, host and
// device.
#pragma once

#include <bit>
#include <cstdint>

#include <halfscope/core/host_device.hpp>

namespace halfscope {

/// e^x, within 2 ulp for results that are normal numbers; below FP32's smallest normal number 0, above its
/// largest infinity. Argument reduction by ln 2 in two parts, then a polynomial on [-ln2/2, ln2/2].
HALFSCOPE_HD float exp(float x) {
  const float clamped = x < -87.3f ? -87.3f : x > 88.72283f ? 88.72283f : x;
  // 1. x = n ln2 + r. Adding and taking away 1.5 * 2^23 rounds to an integer.
  const float n = (clamped * 1.44269504f + 12582912.0f) - 12582912.0f;
  const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
  // 2. e^r by Horner's rule (coefficients of a minimax fit, relative error 2^-26).
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float mantissa = (p * r * r + r) + 1.0f;
  // 3. 2^n in two factors, since n = 128 has no float of its own.
  const auto half = static_cast<std::int32_t>(n) >> 1;
  const auto rest = static_cast<std::int32_t>(n) - half;
  const float result = mantissa * std::bit_cast<float>(static_cast<std::uint32_t>(half + 127) << 23) *
                       std::bit_cast<float>(static_cast<std::uint32_t>(rest + 127) << 23);
  const float bounded = x < -87.3f ? 0.0f : x > 88.72283f ? std::bit_cast<float>(0x7F800000u) : result;
  return x == x ? bounded : x;
}

/// Natural logarithm of a normal number, within 2 ulp; -infinity for zero and subnormal numbers, NaN below
/// zero.
HALFSCOPE_HD float log(float x) {
  // 1. x = 2^e m with m in [sqrt(1/2), sqrt(2)).
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t shifted = bits - 0x3F3504F3u;
  const auto e = static_cast<float>(static_cast<std::int32_t>(shifted) >> 23);
  const float f = std::bit_cast<float>((shifted & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;
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
  const float infinity = std::bit_cast<float>(0x7F800000u);
  const float special = x == infinity        ? infinity
                        : x < 0.0f || x != x ? std::bit_cast<float>(0x7FC00000u)
                                             : -infinity;
  return x >= 0x1p-126f && x < infinity ? result : special;
}

}  // namespace halfscope
