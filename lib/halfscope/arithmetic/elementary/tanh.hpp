// The hyperbolic tangent.
#pragma once

#include <halfscope/arithmetic/elementary/exp.hpp>

namespace halfscope {

/// Hyperbolic tangent, within 1.34 ulp and monotone; the sign of zero is kept, a NaN becomes the quiet one.
/// An odd polynomial up to 0.625, 1 - 2 / (e^2x + 1) above.
[[nodiscard]] HALFSCOPE_HD float tanh(float x) {
  const float magnitude = from_bits(magnitude_bits(x));
  // 1. x + x^3 P(x^2) (minimax fit, relative error 2^-32).
  const float z = magnitude * magnitude;
  float p = 2.147466876e-3f;
  p = p * z - 8.182590827e-3f;
  p = p * z + 2.170293033e-2f;
  p = p * z - 5.394719541e-2f;
  p = p * z + 1.333321035e-1f;
  p = p * z - 3.333333135e-1f;
  const float small = magnitude + magnitude * (z * p);
  // 2. From 10 on the result is 1; the bound keeps the exponential finite.
  const float bounded = magnitude < 10.0f ? magnitude : 10.0f;
  const float large = 1.0f - 2.0f / (exp(2.0f * bounded) + 1.0f);
  const float result = magnitude < 0.625f ? small : large;
  return x == x ? from_bits(to_bits(result) | (to_bits(x) & sign_bit)) : from_bits(quiet_nan_bits);
}

}  // namespace halfscope
