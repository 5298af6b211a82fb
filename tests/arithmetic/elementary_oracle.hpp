// Oracle of the elementary functions: the C library in double precision.
#pragma once

#include <bit>
#include <cmath>
#include <limits>

#include <halfscope/arithmetic/elementary.hpp>

namespace halfscope {

/// Distance of `actual` from `expected` in the spacing of FP32 numbers at `expected`; infinity counts as
/// 2^128.
[[nodiscard, gnu::always_inline]] inline double ulps(float actual, double expected) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (actual != actual || expected != expected)
    return (actual != actual) == (expected != expected) ? 0 : infinity;
  const auto bound = [](double x) { return x < -0x1p128 ? -0x1p128 : x > 0x1p128 ? 0x1p128 : x; };
  const double bounded = bound(expected), value = bound(actual);
  const auto field = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(bounded) >> 52 & 0x7FF);
  const std::int64_t spacing_field = (field < 1023 - 126 ? 1023 - 126 : field) - 23;
  return std::fabs(value - bounded) / std::bit_cast<double>(spacing_field << 52);
}

/// In double precision; where the float is tiny or huge, by a shorter way than the library's, for the sake of
/// time.
[[nodiscard, gnu::always_inline]] inline double exact(Elementary function, double x) {
  const bool tiny = std::fabs(x) < 0x1p-13;
  switch (function) {
    case Elementary::exp:
      return tiny ? 1 + x + x * x / 2 : x < -110 ? 0 : x > 90 ? 0x1p129 : std::exp(x);
    case Elementary::log:
      return x < 0 ? std::numeric_limits<double>::quiet_NaN() : std::log(x);
    case Elementary::tanh:
      return tiny ? x - x * x * x / 3 : std::fabs(x) > 20 ? std::copysign(1.0, x) : std::tanh(x);
    case Elementary::erf:
      return tiny               ? 1.1283791670955126 * (x - x * x * x / 3)
             : std::fabs(x) > 6 ? std::copysign(1.0, x)
                                : std::erf(x);
    case Elementary::rsqrt:
      return x < 0 ? std::numeric_limits<double>::quiet_NaN() : 1 / std::sqrt(x);
    case Elementary::sigmoid:
      return tiny ? 0.5 + x / 4 : x > 40 ? 1 : x < -110 ? 0 : 1 / (1 + std::exp(-x));
  }
  return 0;
}

}  // namespace halfscope
