// The one place where an exact result is rounded to a format and raises its flags.
#pragma once

#include <cstdint>

#include <halfscope/arithmetic/exact.hpp>
#include <halfscope/format/round.hpp>

namespace halfscope {

/// The exceptions of IEEE 754-2019, clause 7; the bits as TestFloat prints them.
namespace flag {
inline constexpr std::uint8_t inexact = 1;
inline constexpr std::uint8_t underflow = 2;  ///< inexact, and tiny after rounding
inline constexpr std::uint8_t overflow = 4;
inline constexpr std::uint8_t divide_by_zero = 8;
inline constexpr std::uint8_t invalid = 16;
}  // namespace flag

/// A result and the flags it raised.
struct Flagged {
  float value = 0;
  std::uint8_t flags = 0;
};

namespace detail {

/// The magnitude of what a number that overflows becomes (IEEE 754-2019, 7.4).
[[nodiscard]] constexpr std::uint32_t overflowed(const Quantizer& q, std::uint32_t sign) {
  const bool inward = q.rounding == Rounding::toward_zero || q.rounding == Rounding::to_odd ||
                      (q.rounding == Rounding::up && sign != 0) ||
                      (q.rounding == Rounding::down && sign == 0);
  return inward ? q.format.max_finite_bits() : beyond_finite(q);
}

[[nodiscard]] constexpr float signed_value(std::uint32_t sign, std::uint32_t magnitude, const Quantizer& q) {
  return signed_result(sign, magnitude, rounding_grid(q));
}

}  // namespace detail

/// `x`, which must not be zero, rounded as `round` in format/round.hpp rounds a float. Overflow is raised
/// where the result, as if its exponent had no bound, is beyond the largest number, whatever it becomes.
[[nodiscard]] Flagged round_exact(const Exact& x, const Quantizer& q, std::uint32_t random_bits = 0);

/// Infinity as an exact result, or what it becomes where the format or the overflow policy has none; then it
/// raises overflow and inexact, as every number that is too large does.
[[nodiscard]] Flagged round_infinity(std::uint32_t sign, const Quantizer& q);

/// `x`, which must not be zero, rounded to an integer that need not fit any format. From 2^63 on, where every
/// float is an integer, `x` itself.
[[nodiscard]] Exact round_to_integer(const Exact& x, Rounding rounding, std::uint32_t random_bits = 0);

}  // namespace halfscope
