// The exponential function and, made of it, the logistic sigmoid.
#pragma once

#include <halfscope/format/bits.hpp>

namespace halfscope {

/// e^x, within 1.1 ulp of the exact value, subnormal results included, and monotone; infinity
/// from 88.722839 on, 0 below -103.97, the quiet NaN for a NaN.
[[nodiscard]] HALFSCOPE_HD float exp(float x) {
  // Beyond these bounds results are 0 and infinity all the same; the integers below stay in range.
  const float clamped = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;
  // 1. x = n ln2 + r. Adding 1.5 * 2^23 rounds to an integer, which the low bits of the sum then hold.
  const float shifted = clamped * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
  // 2. e^r by Horner's rule (coefficients of a minimax fit, relative error 2^-26).
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float mantissa = (p * r * r + r) + 1.0f;
  // 3. 2^n in two factors, for n = 128 and n < -126 have no float of their own; only the last product rounds.
  const std::uint32_t biased = to_bits(shifted) - 0x4B400000u + 254u;  // n + 2 * 127
  const std::uint32_t half = biased >> 1;
  const float result = mantissa * from_bits(half << 23) * from_bits((biased - half) << 23);
  return x == x ? result : from_bits(quiet_nan_bits);
}

/// 1 / (1 + e^-x), within 2.41 ulp, subnormal results included; the quiet NaN for a NaN.
[[nodiscard]] HALFSCOPE_HD float sigmoid(float x) {
  const float power = exp(from_bits(to_bits(x) | sign_bit));  // exp(-|x|), so that nothing overflows
  const float result = (x < 0.0f ? power : 1.0f) / (1.0f + power);
  return x == x ? result : from_bits(quiet_nan_bits);
}

}  // namespace halfscope
