// Rounds one float to a format: the reference that every faster kernel is tested against.
#pragma once

#include <cstdint>

#include <halfscope/format/bits.hpp>
#include <halfscope/format/quantizer.hpp>

namespace halfscope {

/// The numbers of a quantizer that rounding needs, worked out once per array. All magnitudes are FP32 bits.
struct RoundingGrid {
  std::uint32_t min_normal_field;  ///< FP32 exponent field of the smallest normal number
  std::uint32_t dropped_bits;      ///< significand bits that a normal number loses
  std::uint32_t smallest;          ///< smallest positive number; only used where it is a normal float
  std::uint32_t flush_below;       ///< results below this become zero; 0 where subnormals are kept
  std::uint32_t max_finite;
  std::uint32_t beyond;             ///< result of an infinite input, or of an overflow away from zero
  std::uint32_t unsigned_zero = 0;  ///< the sign bit where zero has no sign
  std::uint32_t no_sign = 0;        ///< the sign bit where numbers have none
  std::uint32_t below_zero = 0;     ///< result of a number below zero where numbers have no sign
  std::uint32_t random_kept = ~0u;  ///< the random bits that count
  std::uint32_t powers_alone = 0;   ///< 1 without mantissa bits, see FloatFormat::parity_flip
};

namespace detail {

HALFSCOPE_HD constexpr std::uint32_t beyond_finite(const Quantizer& q) {
  if (q.overflow == Overflow::saturate || q.format.specials == Specials::finite_only) {
    return q.format.max_finite_bits();
  }
  return q.format.has_infinity() ? infinity_bits : quiet_nan_bits;
}

/// Result of a number below zero in a format without a sign bit: zero, the nearest, or NaN.
HALFSCOPE_HD constexpr std::uint32_t below_zero(const Quantizer& q) {
  return q.overflow == Overflow::saturate || !q.format.has_nan() ? 0u : quiet_nan_bits;
}

/// The sign and the magnitude of a result put together; a magnitude beyond infinity's is NaN.
HALFSCOPE_HD constexpr float signed_result(std::uint32_t sign, std::uint32_t magnitude,
                                           const RoundingGrid& grid) {
  const bool below = (sign & grid.no_sign) != 0 && magnitude != 0 && magnitude <= infinity_bits;
  const std::uint32_t result = below ? grid.below_zero : magnitude;
  // One below zero has the sign bit set.
  const std::uint32_t kept_sign = sign & ~((result - 1u) & grid.unsigned_zero) & ~grid.no_sign;
  return from_bits(result > infinity_bits ? quiet_nan_bits : kept_sign | result);
}

/// `significand` / 2^`dropped`, rounded to an integer. `flip` is 1 where an odd one belongs to an even code.
template <Rounding rounding>
HALFSCOPE_HD constexpr std::uint32_t round_quotient(std::uint32_t significand, std::uint32_t dropped,
                                                    std::uint32_t sign, std::uint32_t random_bits,
                                                    std::uint32_t flip) {
  if constexpr (rounding == Rounding::stochastic) {
    // 32 fraction bits; what lies below them is cut off, a bias of less than 2^-32 of a step.
    const std::uint32_t shift = dropped < 63 ? dropped : 63;
    const std::uint64_t fixed_point = (std::uint64_t{significand} << 32) >> shift;
    return static_cast<std::uint32_t>((fixed_point + random_bits) >> 32);
  } else {
    // A significand is below 2^24, so from 25 dropped bits on it is always below half.
    const std::uint32_t shift = dropped < 25 ? dropped : 25;
    const std::uint32_t mask = (1u << shift) - 1u;
    const std::uint32_t quotient = significand >> shift;
    if constexpr (rounding == Rounding::nearest_even) {
      return (significand + (mask >> 1) + ((quotient & mask & 1u) ^ flip)) >> shift;
    } else if constexpr (rounding == Rounding::nearest_away) {
      return (significand + ((mask + 1u) >> 1)) >> shift;
    } else if constexpr (rounding == Rounding::toward_zero) {
      return quotient;
    } else if constexpr (rounding == Rounding::up) {
      return (significand + (sign == 0 ? mask : 0u)) >> shift;
    } else if constexpr (rounding == Rounding::down) {
      return (significand + (sign != 0 ? mask : 0u)) >> shift;
    } else {
      return quotient + ((significand & mask) != 0 ? (quotient & 1u) ^ flip ^ 1u : 0u);
    }
  }
}

/// Result of a finite number that overflows (IEEE 754-2019, 7.4).
template <Rounding rounding>
HALFSCOPE_HD constexpr std::uint32_t overflow_magnitude(const RoundingGrid& grid, std::uint32_t sign) {
  if constexpr (rounding == Rounding::toward_zero || rounding == Rounding::to_odd) return grid.max_finite;
  if constexpr (rounding == Rounding::up) return sign == 0 ? grid.beyond : grid.max_finite;
  if constexpr (rounding == Rounding::down) return sign != 0 ? grid.beyond : grid.max_finite;
  return grid.beyond;
}

}  // namespace detail

[[nodiscard]] HALFSCOPE_HD constexpr RoundingGrid rounding_grid(const Quantizer& q) {
  const FloatFormat& format = q.format;
  const int smallest_field = format.min_exponent() - format.mantissa_bits + 127;
  const auto min_normal_field = static_cast<std::uint32_t>(format.min_exponent() + 127);
  return {min_normal_field,
          static_cast<std::uint32_t>(23 - format.mantissa_bits),
          smallest_field > 0 ? static_cast<std::uint32_t>(smallest_field) << 23 : 0u,
          format.subnormals == Subnormals::flush_to_zero ? min_normal_field << 23 : 0u,
          format.max_finite_bits(),
          detail::beyond_finite(q),
          format.has_signed_zero() ? 0u : sign_bit,
          format.sign == SignBit::present ? 0u : sign_bit,
          detail::below_zero(q),
          q.random_bits > 0 ? ~0u << (32 - q.random_bits) : ~0u,
          format.mantissa_bits == 0 ? 1u : 0u};
}

/// Facts about a format's zeros at compile time.
enum class Zeros : std::uint8_t {
  any,
  both,  ///< it has -0, and numbers below zero
};

/// `round` with the rounding known at compile time: no branch depends on the data, so loops over it
/// vectorise.
template <Rounding rounding, Zeros zeros = Zeros::any>
[[nodiscard]] HALFSCOPE_HD constexpr float round_on_grid(float x, const RoundingGrid& grid,
                                                         std::uint32_t random_bits = 0) {
  const std::uint32_t sign = to_bits(x) & sign_bit;
  const std::uint32_t magnitude = to_bits(x) & ~sign_bit;
  const std::uint32_t field = (magnitude >> 23) != 0 ? magnitude >> 23 : 1u;
  const std::uint32_t significand = magnitude - ((field - 1u) << 23);  // with its leading 1, where it has one
  const std::uint32_t below_normal = field < grid.min_normal_field ? grid.min_normal_field - field : 0u;
  const std::uint32_t dropped = grid.dropped_bits + below_normal;
  const std::uint32_t flip =
      field < grid.min_normal_field ? 0u : (field - grid.min_normal_field) & grid.powers_alone;
  const std::uint32_t quotient = detail::round_quotient<rounding>(
      significand, dropped, sign, random_bits & grid.random_kept, zeros == Zeros::both ? 0u : flip);
  // A carry out of the significand moves into the exponent field by itself. With all 24 bits dropped, the
  // result is zero or the smallest number.
  const std::uint32_t kept = ((field - 1u) << 23) + (quotient << (dropped < 24 ? dropped : 24));
  std::uint32_t result = dropped < 24 ? kept : (0u - quotient) & grid.smallest;
  result = result < grid.flush_below ? 0u : result;
  result = result > grid.max_finite ? detail::overflow_magnitude<rounding>(grid, sign) : result;
  result = magnitude == infinity_bits ? grid.beyond : result;
  if constexpr (zeros == Zeros::any)
    return detail::signed_result(sign, magnitude > infinity_bits ? magnitude : result, grid);
  const bool nan = (magnitude > infinity_bits) | (result > infinity_bits);
  return from_bits(nan ? quiet_nan_bits : sign | result);
}

/// `x` rounded as `q` says, as if its exponent had no bounds, then overflowed or saturated; the sign of zero
/// is kept, every NaN becomes the quiet one. Below the smallest normal number the grid is that of the
/// subnormals, and with Subnormals::flush_to_zero what is then still below it becomes zero (tininess is
/// detected after rounding). Where zero has no sign it is +0. A format without a sign bit has no number below
/// zero: NaN, or zero where it saturates or has no NaN. Rounding::stochastic rounds away from zero if the
/// discarded fraction plus `random_bits` / 2^32 reaches 1; of them only the highest `q.random_bits` count, if
/// that is not 0. Source: IEEE 754-2019, clauses 4.3, 7.4 and 7.5; OCP 8-bit floating point 1.0, section 5.2
/// for saturation; PTX ISA 9, cvt.rs, for counted random bits.
[[nodiscard]] HALFSCOPE_HD constexpr float round(float x, const Quantizer& q, std::uint32_t random_bits = 0) {
  const RoundingGrid grid = rounding_grid(q);
  switch (q.rounding) {
    case Rounding::nearest_away:
      return round_on_grid<Rounding::nearest_away>(x, grid);
    case Rounding::toward_zero:
      return round_on_grid<Rounding::toward_zero>(x, grid);
    case Rounding::up:
      return round_on_grid<Rounding::up>(x, grid);
    case Rounding::down:
      return round_on_grid<Rounding::down>(x, grid);
    case Rounding::to_odd:
      return round_on_grid<Rounding::to_odd>(x, grid);
    case Rounding::stochastic:
      return round_on_grid<Rounding::stochastic>(x, grid, random_bits);
    case Rounding::nearest_even:
      break;
  }
  return round_on_grid<Rounding::nearest_even>(x, grid);
}

}  // namespace halfscope
