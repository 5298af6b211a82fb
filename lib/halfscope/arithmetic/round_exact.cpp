// Rounding in integers: a significand of 64 bits is cut at the format's last place, and looks at what it
// lost.
#include <halfscope/arithmetic/round_exact.hpp>

#include <halfscope/format/round.hpp>

namespace halfscope {
namespace {

constexpr std::uint64_t half = std::uint64_t{1} << 63;

/// significand / 2^dropped.
struct FixedPoint {
  std::uint64_t whole;
  std::uint64_t fraction;  ///< in units of 2^-64, the lowest bit sticky
};

FixedPoint divide(std::uint64_t significand, int dropped) {
  if (dropped <= 0) return {significand, 0};
  if (dropped < 64) return {significand >> dropped, significand << (64 - dropped)};
  if (dropped == 64) return {0, significand};
  if (dropped > 127) return {0, 1};
  const std::uint64_t lost = significand << (128 - dropped);
  return {0, (significand >> (dropped - 64)) | (lost != 0 ? 1u : 0u)};
}

/// How a number of this sign rounds.
struct Direction {
  Rounding rounding;
  std::uint32_t sign;
  std::uint32_t random_bits;
  std::uint32_t flip = 0;  ///< 1 where an odd whole belongs to an even code
};

std::uint64_t round_fixed(const FixedPoint& x, const Direction& direction) {
  const std::uint64_t odd = (x.whole & 1) ^ direction.flip;
  const std::uint64_t above = x.fraction != 0 ? 1 : 0;
  switch (direction.rounding) {
    case Rounding::nearest_even:
      return x.whole + (x.fraction > half || (x.fraction == half && odd != 0) ? 1 : 0);
    case Rounding::nearest_away:
      return x.whole + (x.fraction >> 63);
    case Rounding::toward_zero:
      return x.whole;
    case Rounding::up:
      return x.whole + (direction.sign == 0 ? above : 0);
    case Rounding::down:
      return x.whole + (direction.sign != 0 ? above : 0);
    case Rounding::to_odd:
      return x.whole + (above & (odd ^ 1));
    case Rounding::stochastic:
      return x.whole + (((x.fraction >> 32) + direction.random_bits) >> 32);
  }
  return x.whole;
}

/// FP32 bits of steps * 2^exponent, with steps up to 2^24.
std::uint32_t compose(std::uint64_t steps, int exponent) {
  if (steps == 0) return 0;
  const int width = detail::bit_width(steps);
  const int field = exponent + width - 1 + 127;
  if (field <= 0) return static_cast<std::uint32_t>(steps << (exponent + 149));
  const auto significand = static_cast<std::uint32_t>(width > 24 ? steps >> 1 : steps << (24 - width));
  return (static_cast<std::uint32_t>(field - 1) << 23) + significand;
}

}  // namespace

Flagged round_infinity(std::uint32_t sign, const Quantizer& q) {
  const std::uint32_t beyond = detail::beyond_finite(q);
  const bool kept = beyond == infinity_bits;
  return {detail::signed_value(sign, beyond, q),
          kept ? std::uint8_t{0} : std::uint8_t{flag::overflow | flag::inexact}};
}

Flagged round_exact(const Exact& x, const Quantizer& q, std::uint32_t random_bits) {
  const FloatFormat& format = q.format;
  const int zeros = std::countl_zero(x.significand);
  const std::uint64_t significand = x.significand << zeros;
  const int exponent = x.exponent - zeros + 63;  // exponent of the leading one
  const int below_normal = exponent < format.min_exponent() ? format.min_exponent() - exponent : 0;
  const std::uint32_t flip = format.parity_flip(exponent);
  const Direction direction{q.rounding, x.sign, random_bits & rounding_grid(q).random_kept,
                            below_normal > 0 ? 0 : flip};

  const FixedPoint on_grid = divide(significand, 63 - format.mantissa_bits + below_normal);
  const std::uint64_t steps = round_fixed(on_grid, direction);
  bool inexact = on_grid.fraction != 0;
  const bool too_large = exponent > format.max_exponent();
  std::uint32_t magnitude =
      too_large ? infinity_bits : compose(steps, exponent + below_normal - format.mantissa_bits);
  if (magnitude > format.max_finite_bits()) {
    return {detail::signed_value(x.sign, detail::overflowed(q, x.sign), q), flag::overflow | flag::inexact};
  }

  bool tiny = below_normal > 0;
  // With all its significand bits it may still round up to the smallest normal number.
  if (below_normal == 1) {
    const FixedPoint unbounded = divide(significand, 63 - format.mantissa_bits);
    Direction of_unbounded = direction;
    of_unbounded.flip = flip;
    tiny = round_fixed(unbounded, of_unbounded) >> (format.mantissa_bits + 1) == 0;
  }
  const auto smallest_normal = static_cast<std::uint32_t>(format.min_exponent() + 127) << 23;
  if (format.subnormals == Subnormals::flush_to_zero && magnitude < smallest_normal) {
    magnitude = 0;
    inexact = true;
  }
  const int flags = (inexact ? flag::inexact : 0) | (inexact && tiny ? flag::underflow : 0);
  return {detail::signed_value(x.sign, magnitude, q), static_cast<std::uint8_t>(flags)};
}

Exact round_to_integer(const Exact& x, Rounding rounding, std::uint32_t random_bits) {
  if (x.exponent >= 0) return x;
  return {x.sign, 0, round_fixed(divide(x.significand, -x.exponent), {rounding, x.sign, random_bits})};
}

}  // namespace halfscope
