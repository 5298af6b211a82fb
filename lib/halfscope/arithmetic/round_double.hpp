// Rounding of results that a double holds: what the processor has normalised is cut in integers, several
// times faster than `round_exact` and equal to it.
#pragma once

#include <bit>
#include <cmath>

#include <halfscope/arithmetic/round_exact.hpp>

namespace halfscope::detail {

/// Whether `round_double` takes `x`: neither zero, infinite, NaN nor subnormal, and no random bits, for which
/// 53 bits may be too few.
[[nodiscard, gnu::always_inline]] inline bool can_round_double(double x, const Quantizer& q) {
  return std::abs(x) >= 0x1p-1022 && std::abs(x) < __builtin_inf() && q.rounding != Rounding::stochastic;
}

/// (-1)^sign * significand * 2^(exponent - 52), with the leading one at bit 52.
struct Unpacked {
  std::uint32_t sign;
  int exponent;
  std::uint64_t significand;
};

/// significand / 2^dropped, rounded to an integer. `flip` is 1 where an odd one belongs to an even code.
[[nodiscard, gnu::always_inline]] inline std::uint64_t round_steps(const Unpacked& x, int dropped,
                                                                   Rounding rounding, std::uint32_t flip) {
  const std::uint64_t whole = x.significand >> dropped;
  const std::uint64_t rest = x.significand - (whole << dropped), half = std::uint64_t{1} << (dropped - 1);
  const std::uint64_t above = rest != 0 ? 1 : 0, odd = (whole & 1) ^ flip;
  switch (rounding) {
    case Rounding::nearest_even:
      return whole + (rest + odd > half ? 1 : 0);
    case Rounding::nearest_away:
      return whole + (rest >= half ? 1 : 0);
    case Rounding::up:
      return whole + (x.sign == 0 ? above : 0);
    case Rounding::down:
      return whole + (x.sign != 0 ? above : 0);
    case Rounding::to_odd:
      return whole + (above & (odd ^ 1));
    case Rounding::toward_zero:
    case Rounding::stochastic:
      break;
  }
  return whole;
}

/// `round_exact` of a double that can_round_double. Always inlined: where the quantizer is known at compile
/// time, as Number's is, half of it is gone.
[[nodiscard, gnu::always_inline]] inline Flagged round_double(double x, const Quantizer& q) {
  const FloatFormat& format = q.format;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto field = static_cast<int>((bits >> 52) & 0x7FFu);
  constexpr std::uint64_t leading = std::uint64_t{1} << 52;
  const Unpacked unpacked{static_cast<std::uint32_t>(bits >> 32) & sign_bit, field - 1023,
                          (bits & (leading - 1)) | leading};
  const int lowest = format.min_exponent();
  const int below_normal = unpacked.exponent < lowest ? lowest - unpacked.exponent : 0;
  const int normal_dropped = 52 - format.mantissa_bits;
  // From 54 dropped bits on, a significand is below half a step.
  const int dropped = normal_dropped + below_normal < 54 ? normal_dropped + below_normal : 54;
  const std::uint32_t flip = format.parity_flip(unpacked.exponent);
  const std::uint64_t steps = round_steps(unpacked, dropped, q.rounding, below_normal > 0 ? 0 : flip);
  const int unit = unpacked.exponent + below_normal - format.mantissa_bits;
  const double step = std::bit_cast<double>(static_cast<std::uint64_t>(unit + 1023) << 52);
  const double magnitude = static_cast<double>(static_cast<std::int64_t>(steps)) * step;  // exact
  if (magnitude > double{from_bits(format.max_finite_bits())}) {
    return {signed_value(unpacked.sign, overflowed(q, unpacked.sign), q), flag::overflow | flag::inexact};
  }
  bool inexact = (unpacked.significand & ((std::uint64_t{1} << dropped) - 1)) != 0;
  // One bit below the normal numbers, it may round up to the smallest of them with all its bits.
  const bool tiny =
      below_normal > 1 ||
      (below_normal == 1 &&
       // NOLINTNEXTLINE(*-core.UndefinedBinaryOperatorResult): 29 to 52 bits are dropped
       round_steps(unpacked, normal_dropped, q.rounding, flip) < leading >> (normal_dropped - 1));
  const double kept =
      format.subnormals == Subnormals::flush_to_zero && std::ilogb(magnitude) < lowest ? 0 : magnitude;
  inexact |= kept != magnitude;
  const int flags = (inexact ? flag::inexact : 0) | (inexact && tiny ? flag::underflow : 0);
  return {signed_value(unpacked.sign, to_bits(static_cast<float>(kept)), q),
          static_cast<std::uint8_t>(flags)};
}

}  // namespace halfscope::detail
