// The error function.
#pragma once

#include <halfscope/arithmetic/elementary/exp.hpp>

namespace halfscope {

/// Error function, within 1.24 ulp; the sign of zero is kept, a NaN becomes the quiet one. An odd polynomial
/// up to 0.93, 1 - e^-Q(x) above.
[[nodiscard]] HALFSCOPE_HD float erf(float x) {
  const float magnitude = from_bits(magnitude_bits(x));
  // 1. x + x P(x^2) (minimax fit, relative error 2^-31).
  const float z = magnitude * magnitude;
  float p = 8.345160313e-5f;
  p = p * z - 8.137421100e-4f;
  p = p * z + 5.200632848e-3f;
  p = p * z - 2.685927041e-2f;
  p = p * z + 1.128369421e-1f;
  p = p * z - 3.761263490e-1f;
  p = p * z + 1.283791661e-1f;
  const float small = magnitude + magnitude * p;
  // 2. Q(x) = -log(1 - erf(x)), fitted with the weight of its effect on the result; from 4 on that is 1.
  const float t = magnitude < 4.0f ? magnitude : 4.0f;
  float q = 1.152732693e-5f;
  q = q * t - 3.257011122e-4f;
  q = q * t + 3.653952619e-3f;
  q = q * t - 2.378572896e-2f;
  q = q * t + 1.062635705e-1f;
  q = q * t + 6.351356506e-1f;
  q = q * t + 1.128652215e+0f;
  const float large = 1.0f - exp(-(q * t));
  const float result = magnitude < 0.93f ? small : large;
  return x == x ? from_bits(to_bits(result) | (to_bits(x) & sign_bit)) : from_bits(quiet_nan_bits);
}

}  // namespace halfscope
