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

/// From the definitions of IEEE 754 and the OCP formats: nan_only gives up one code of the top binade,
/// finite_only none.
inline Limits limits(const FloatFormat& f) {
  const int ieee_max_exponent = (1 << (f.exponent_bits - 1)) - 1;
  const double step = std::ldexp(1.0, -f.mantissa_bits);
  const double min_normal = std::ldexp(1.0, 1 - ieee_max_exponent);
  if (f.specials == Specials::ieee) return {min_normal, std::ldexp(2.0 - step, ieee_max_exponent)};
  const double significand = f.specials == Specials::nan_only ? 2.0 - 2 * step : 2.0 - step;
  return {min_normal, std::ldexp(significand, ieee_max_exponent + 1)};
}

/// Result for an infinity, or for an overflow away from zero.
inline double beyond(const Quantizer& q) {
  if (q.overflow == Overflow::saturate || q.format.specials == Specials::finite_only) {
    return limits(q.format).max_finite;
  }
  const bool has_infinity = q.format.specials == Specials::ieee;
  return has_infinity ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
}

/// Whether the magnitude `steps` (grid steps, not an integer) goes up to the next integer.
inline bool goes_up(double steps, bool negative, Rounding rounding, std::uint32_t random_bits) {
  const double below = std::floor(steps);
  const double fraction = steps - below;
  const bool odd = std::fmod(below, 2.0) == 1.0;
  switch (rounding) {
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
  if (std::isnan(x) || x == 0) return x;
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
    result = (std::floor(steps) + (goes_up(steps, negative, q.rounding, random_bits) ? 1 : 0)) * unit;
    if (q.format.subnormals == Subnormals::flush_to_zero && result < limit.min_normal) result = 0;
    if (result > limit.max_finite)
      result = overflows_outward(q.rounding, negative) ? beyond(q) : limit.max_finite;
  }
  return negative ? -result : result;
}

/// The same as a float, with every NaN the quiet one that the library returns.
inline float round_to_float(double x, const Quantizer& q, std::uint32_t random_bits = 0) {
  const double result = round(x, q, random_bits);
  return std::isnan(result) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(result);
}

/// The number that `code` of an 8-bit or narrower format encodes, field by field.
inline double decode(unsigned code, const FloatFormat& f) {
  const unsigned mantissa_codes = 1u << f.mantissa_bits;
  const unsigned exponent_codes = 1u << f.exponent_bits;
  const unsigned mantissa = code % mantissa_codes;
  const unsigned exponent = code / mantissa_codes % exponent_codes;
  const bool negative = code / mantissa_codes / exponent_codes % 2 == 1;
  const bool top = exponent == exponent_codes - 1;
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  double magnitude = 0;
  if (top && f.specials == Specials::ieee) {
    magnitude =
        mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (top && f.specials == Specials::nan_only && mantissa == mantissa_codes - 1) {
    magnitude = std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, 1 - bias - f.mantissa_bits);
  } else {
    magnitude = std::ldexp(mantissa_codes + mantissa, static_cast<int>(exponent) - bias - f.mantissa_bits);
  }
  return negative ? -magnitude : magnitude;
}

}  // namespace halfscope::reference
