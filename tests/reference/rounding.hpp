// Rounding by its definition, in double arithmetic: slow, and sharing nothing with the library's.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include <halfscope/format/quantizer.hpp>

namespace halfscope::reference {

struct Limits {
  double min_normal;
  double max_finite;
};

inline bool has_one_zero(const FloatFormat& f) {
  return f.sign == SignBit::absent || f.specials == Specials::fnuz || f.specials == Specials::extended;
}

/// From the definitions of IEEE 754, OCP and IEEE P3109: of the codes of the top binade, ieee gives up all,
/// nan_only one, extended one for infinity and without a sign bit one for NaN.
inline Limits limits(const FloatFormat& f) {
  const int bias = (1 << (f.exponent_bits - 1)) - 1 + f.bias_offset;
  const int codes = 1 << f.mantissa_bits;
  int given_up = 0;
  if (f.specials == Specials::ieee) given_up = codes;
  if (f.specials == Specials::nan_only) given_up = 1;
  if (f.specials == Specials::extended) given_up = f.sign == SignBit::present ? 1 : 2;
  int top = (1 << f.exponent_bits) - 1 - bias;
  int left = codes - 1 - given_up;
  for (; left < 0; left += codes) --top;
  return {std::ldexp(1.0, 1 - bias), std::ldexp(codes + left, top - f.mantissa_bits)};
}

/// Result for an infinity, or for an overflow away from zero.
inline double beyond(const Quantizer& q) {
  if (q.overflow == Overflow::saturate || q.format.specials == Specials::finite_only) {
    return limits(q.format).max_finite;
  }
  const bool has_infinity = q.format.specials == Specials::ieee || q.format.specials == Specials::extended;
  return has_infinity ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
}

/// The sign where the format has one; a number below zero is NaN there, or 0 where it saturates.
inline double with_sign(bool negative, double magnitude, const Quantizer& q) {
  if (!negative || (magnitude == 0 && has_one_zero(q.format))) return magnitude;
  if (q.format.sign == SignBit::present || std::isnan(magnitude)) return -magnitude;
  const bool is_kept = q.overflow == Overflow::saturate || q.format.specials == Specials::finite_only;
  return is_kept ? 0 : std::numeric_limits<double>::quiet_NaN();
}

/// Whether the code of the number of so many grid steps in a binade is odd. Without mantissa bits binades are
/// the codes; zero, below all of them, has code 0.
inline bool has_odd_code(double steps, double binade, const FloatFormat& f) {
  if (f.mantissa_bits > 0) return std::fmod(steps, 2.0) == 1.0;
  return steps > 0 && (std::ilogb(binade) - std::ilogb(limits(f).min_normal)) % 2 == 0;
}

/// Whether the magnitude `steps` (grid steps, not an integer) goes up to the next integer. `odd`: the code of
/// the integer below.
inline bool goes_up(double steps, bool odd, bool negative, const Quantizer& q, std::uint32_t random_bits) {
  const double fraction = steps - std::floor(steps);
  switch (q.rounding) {
    case Rounding::nearest_even:
      return fraction > 0.5 || (fraction == 0.5 && odd);
    case Rounding::nearest_away:
      return fraction >= 0.5;
    case Rounding::toward_zero:
      return false;
    case Rounding::up:
      return fraction > 0 && !negative;
    case Rounding::down:
      return fraction > 0 && negative;
    case Rounding::to_odd:
      return fraction > 0 && !odd;
    case Rounding::stochastic:
      return std::floor(std::ldexp(fraction, 32)) + random_bits >= std::ldexp(1.0, 32);
  }
  return false;
}

/// Whether a finite number that is too large becomes `beyond` and not the largest finite number.
inline bool overflows_outward(Rounding rounding, bool negative) {
  if (rounding == Rounding::toward_zero || rounding == Rounding::to_odd) return false;
  if (rounding == Rounding::up) return !negative;
  if (rounding == Rounding::down) return negative;
  return true;
}

/// `x` rounded as `q` says; exact for any double.
inline double round(double x, const Quantizer& q, std::uint32_t random_bits = 0) {
  if (std::isnan(x)) return x;
  if (x == 0) return has_one_zero(q.format) ? 0 : x;
  const bool negative = std::signbit(x);
  const Limits limit = limits(q.format);
  double result = 0;
  if (std::isinf(x)) {
    result = beyond(q);
  } else {
    const double magnitude = std::abs(x);
    const double binade = magnitude < limit.min_normal ? limit.min_normal : std::exp2(std::ilogb(magnitude));
    const double unit = std::ldexp(binade, -q.format.mantissa_bits);
    const double steps = magnitude / unit;  // exact: unit is a power of two
    const double below = std::floor(steps);
    const bool odd = has_odd_code(below, binade, q.format);
    result = (below + (goes_up(steps, odd, negative, q, random_bits) ? 1 : 0)) * unit;
    if (q.format.subnormals == Subnormals::flush_to_zero && result < limit.min_normal) result = 0;
    if (result > limit.max_finite)
      result = overflows_outward(q.rounding, negative) ? beyond(q) : limit.max_finite;
  }
  return with_sign(negative, result, q);
}

/// The same as a float, with every NaN the quiet one that the library returns.
inline float round_to_float(double x, const Quantizer& q, std::uint32_t random_bits = 0) {
  const double result = round(x, q, random_bits);
  return std::isnan(result) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(result);
}

/// The number that `code` encodes, field by field.
inline double decode(unsigned code, const FloatFormat& f) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                   inf = std::numeric_limits<double>::infinity();
  const unsigned mantissa_codes = 1u << f.mantissa_bits;
  const unsigned exponent_codes = 1u << f.exponent_bits;
  const unsigned mantissa = code % mantissa_codes;
  const unsigned exponent = code / mantissa_codes % exponent_codes;
  const bool has_sign = f.sign == SignBit::present;
  const bool negative = has_sign && code / mantissa_codes / exponent_codes % 2 == 1;
  const double sign = negative ? -1 : 1;
  const bool top = exponent == exponent_codes - 1;
  const unsigned steps_to_top =
      (exponent_codes - 1 - exponent) * mantissa_codes + (mantissa_codes - 1 - mantissa);
  const bool replaces_zero = f.specials == Specials::fnuz || f.specials == Specials::extended;
  if (replaces_zero && negative && exponent == 0 && mantissa == 0) return nan;
  if (f.specials == Specials::extended && !has_sign && steps_to_top == 0) return nan;
  if (f.specials == Specials::extended && steps_to_top == (has_sign ? 0 : 1)) return sign * inf;
  if (top && f.specials == Specials::ieee) return mantissa == 0 ? sign * inf : nan;
  if (f.specials == Specials::nan_only && steps_to_top == 0) return nan;
  const int bias = (1 << (f.exponent_bits - 1)) - 1 + f.bias_offset;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, 1 - bias - f.mantissa_bits)
                                         : std::ldexp(mantissa_codes + mantissa,
                                                      static_cast<int>(exponent) - bias - f.mantissa_bits);
  return sign * magnitude;
}

}  // namespace halfscope::reference
