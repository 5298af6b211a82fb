// The operations and their flags by definition, in double arithmetic: slow, and sharing nothing with the
// library.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "tests/reference/rounding.hpp"

namespace halfscope::reference {

struct Answer {
  float value;
  unsigned flags;  ///< 1 inexact, 2 underflow, 4 overflow, 8 divide by zero, 16 invalid
};

/// `x`, where it is the exact number; else the one of the two doubles around the exact number that has an odd
/// significand. `error` has the sign of exact - x. No rounding to 24 bits or fewer can tell it from the exact
/// one.
inline double to_odd(double x, double error) {
  if (error == 0 || x == 0 || !std::isfinite(x)) return x;
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if (bits % 2 == 1) return x;
  return std::nextafter(x, error > 0 ? INFINITY : -INFINITY);
}

/// Knuth's two-sum gives the error of an addition exactly.
inline double odd_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  const double a_part = sum - b_part;
  return to_odd(sum, (a - a_part) + (b - b_part));
}
/// The remainder of a division is exact, and tells on which side of the quotient the true one lies.
inline double odd_quotient(double a, double b) {
  const double quotient = a / b;
  const double rest = std::fma(-quotient, b, a);
  return to_odd(quotient, std::signbit(b) ? -rest : rest);
}
inline double odd_root(double x) {
  const double root = std::sqrt(x);
  return to_odd(root, std::fma(-root, root, x));
}

/// `x` rounded to the significand of `q`'s format, its exponent unbounded.
inline double round_unbounded(double x, const Quantizer& q, std::uint32_t random_bits) {
  const double binade = std::exp2(std::ilogb(x)), unit = std::ldexp(binade, -q.format.mantissa_bits);
  const double steps = std::abs(x) / unit;
  const bool odd = has_odd_code(std::floor(steps), binade, q.format);
  const bool up = goes_up(steps, odd, std::signbit(x), q, random_bits);
  return std::copysign((std::floor(steps) + (up ? 1 : 0)) * unit, x);
}

/// The flags of IEEE 754, clause 7, from their definitions: what was asked for against what came out.
inline unsigned flags_of(double exact, double rounded, const Quantizer& q, std::uint32_t random_bits) {
  if (std::isnan(exact) || exact == 0) return 0;
  if (std::isinf(exact)) return std::isinf(rounded) ? 0 : 4 | 1;
  const double unbounded = std::abs(round_unbounded(exact, q, random_bits));
  if (unbounded > limits(q.format).max_finite) return 4 | 1;
  const unsigned inexact = rounded == exact ? 0 : 1;
  return inexact | (inexact != 0 && unbounded < limits(q.format).min_normal ? 2 : 0);
}

/// The last step of every operation. `exact` is to odd where no double is exact.
inline Answer answer(double exact, const Quantizer& q, std::uint32_t random_bits = 0) {
  const double rounded = reference::round(exact, q, random_bits);
  return {std::isnan(rounded) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(rounded),
          flags_of(exact, rounded, q, random_bits)};
}

inline bool signalling(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return std::isnan(x) && (bits >> 22) % 2 == 0;
}

/// The answer where a NaN goes in or comes out.
inline Answer nan_answer(float a, float b, float c) {
  const bool was_nan = std::isnan(a) || std::isnan(b) || std::isnan(c);
  const bool invalid = !was_nan || signalling(a) || signalling(b) || signalling(c);
  return {std::numeric_limits<float>::quiet_NaN(), invalid ? 16u : 0u};
}

/// An exact sum of zero is -0 where both terms are, and in round down where their signs differ.
inline double zero_sum(double sum, double a, double b, Rounding rounding) {
  if (sum != 0 || std::signbit(a) == std::signbit(b)) return sum;
  return rounding == Rounding::down ? -0.0 : 0.0;
}

inline Answer add(float a, float b, const Quantizer& q, std::uint32_t random_bits = 0) {
  const double sum = odd_sum(double{a}, double{b});
  if (std::isnan(double{a} + double{b})) return nan_answer(a, b, 0);
  const double exact = std::isinf(a) || std::isinf(b) ? double{a} + double{b} : sum;
  return answer(zero_sum(exact, double{a}, double{b}, q.rounding), q, random_bits);
}
inline Answer sub(float a, float b, const Quantizer& q, std::uint32_t random_bits = 0) {
  return reference::add(a, std::isnan(b) ? b : -b, q, random_bits);
}
inline Answer mul(float a, float b, const Quantizer& q, std::uint32_t random_bits = 0) {
  const double product = double{a} * double{b};
  return std::isnan(product) ? nan_answer(a, b, 0) : answer(product, q, random_bits);
}
inline Answer div(float a, float b, const Quantizer& q, std::uint32_t random_bits = 0) {
  const double quotient = double{a} / double{b};
  if (std::isnan(quotient)) return nan_answer(a, b, 0);
  if (b == 0 && std::isfinite(a)) return {answer(quotient, q).value, 8};
  const bool special = std::isinf(a) || std::isinf(b);
  return answer(special ? quotient : odd_quotient(double{a}, double{b}), q, random_bits);
}
inline Answer sqrt(float a, const Quantizer& q, std::uint32_t random_bits = 0) {
  if (std::isnan(a) || a < 0) return nan_answer(a, 0, 0);
  return answer(std::isinf(a) || a == 0 ? double{a} : odd_root(double{a}), q, random_bits);
}
inline Answer fma(float a, float b, float c, const Quantizer& q, std::uint32_t random_bits = 0) {
  const double product = double{a} * double{b};
  if (std::isnan(product) && !std::isnan(a) && !std::isnan(b)) return nan_answer(0, 0, 0);
  if (std::isnan(product + double{c})) return nan_answer(a, b, c);
  const bool special = std::isinf(product) || std::isinf(c);
  const double exact = special ? product + double{c} : odd_sum(product, double{c});
  return answer(zero_sum(exact, product, double{c}, q.rounding), q, random_bits);
}
inline Answer rem(float a, float b, const Quantizer& q, std::uint32_t random_bits = 0) {
  const double rest = std::remainder(double{a}, double{b});
  return std::isnan(rest) ? nan_answer(a, b, 0) : answer(rest, q, random_bits);
}
inline Answer convert(float a, const Quantizer& q, std::uint32_t random_bits = 0) {
  return std::isnan(a) ? nan_answer(a, 0, 0) : answer(double{a}, q, random_bits);
}

}  // namespace halfscope::reference
