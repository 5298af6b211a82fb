// Correctly rounded operations on the numbers of any format, with the flags that IEEE 754 asks for.
#pragma once

#include <cstdint>

#include <halfscope/arithmetic/round_double.hpp>

namespace halfscope {

namespace detail {

// The operations on any operands, in integers.
[[nodiscard]] Flagged add_any(float a, float b, const Quantizer& q, std::uint32_t random_bits);
[[nodiscard]] Flagged mul_any(float a, float b, const Quantizer& q, std::uint32_t random_bits);
[[nodiscard]] Flagged div_any(float a, float b, const Quantizer& q, std::uint32_t random_bits);
[[nodiscard]] Flagged convert_any(float a, const Quantizer& q, std::uint32_t random_bits);

/// Whether the double a + b is exact, in every rounding of the processor: 24 bits each, at most 28 apart.
[[nodiscard]] constexpr bool has_exact_double_sum(float a, float b) {
  const auto distance = static_cast<int>(magnitude_bits(a) >> 23) - static_cast<int>(magnitude_bits(b) >> 23);
  return distance <= 28 && distance >= -28;
}

}  // namespace detail

// Each operation is worked out exactly, then rounded once to the format of `q` in its rounding and overflow
// policy, so the operands may be any floats; where a double holds the exact result, or enough of it, by way
// of that, whatever the processor's rounding. `random_bits` are used by Rounding::stochastic alone. A NaN
// result is the positive quiet NaN. A signalling NaN among the operands raises invalid.
// Source: IEEE 754-2019, clauses 5.4.1, 6.3 and 7.

[[nodiscard]] inline Flagged add(float a, float b, const Quantizer& q, std::uint32_t random_bits = 0) {
  const double sum = double{a} + double{b};
  const bool exact = detail::can_round_double(sum, q) && detail::has_exact_double_sum(a, b);
  return exact ? detail::round_double(sum, q) : detail::add_any(a, b, q, random_bits);
}

[[nodiscard]] inline Flagged sub(float a, float b, const Quantizer& q, std::uint32_t random_bits = 0) {
  return add(a, from_bits(to_bits(b) ^ sign_bit), q, random_bits);
}

[[nodiscard]] inline Flagged mul(float a, float b, const Quantizer& q, std::uint32_t random_bits = 0) {
  const double product = double{a} * double{b};  // 48 bits: exact
  const bool enough = detail::can_round_double(product, q);
  return enough ? detail::round_double(product, q) : detail::mul_any(a, b, q, random_bits);
}

/// A number divided by zero raises divide_by_zero alone and is what an infinite result becomes in the format.
[[nodiscard]] inline Flagged div(float a, float b, const Quantizer& q, std::uint32_t random_bits = 0) {
  // Not exact, but a quotient of two 24-bit numbers that is no number of 25 bits is at least 2^-49 away from
  // the next: a double never looks like a number of the format, or half way between two, where it is none.
  const double quotient = double{a} / double{b};
  const bool enough = detail::can_round_double(quotient, q);
  return enough ? detail::round_double(quotient, q) : detail::div_any(a, b, q, random_bits);
}

[[nodiscard]] Flagged sqrt(float a, const Quantizer& q, std::uint32_t random_bits = 0);
/// a * b + c, rounded once. Infinity times zero raises invalid whatever `c` is, NaN included.
[[nodiscard]] Flagged fma(float a, float b, float c, const Quantizer& q, std::uint32_t random_bits = 0);
/// a - n b with n the integer nearest to a / b, the even one of two; exact in the operands' format.
[[nodiscard]] Flagged rem(float a, float b, const Quantizer& q, std::uint32_t random_bits = 0);
/// `a` brought to another format: `round` with flags.
[[nodiscard]] inline Flagged convert(float a, const Quantizer& q, std::uint32_t random_bits = 0) {
  const bool enough = detail::can_round_double(double{a}, q);
  return enough ? detail::round_double(double{a}, q) : detail::convert_any(a, q, random_bits);
}

/// Whether a rounding to an integer that changes the number is worth a flag.
enum class InexactFlag : std::uint8_t {
  raised,   ///< roundToIntegralExact
  ignored,  ///< roundToIntegralTiesToEven and its relatives
};
/// `a` rounded to an integer in the direction of `q`, zero with the sign of `a`.
[[nodiscard]] Flagged round_to_integral(float a, const Quantizer& q,
                                        InexactFlag inexact = InexactFlag::raised,
                                        std::uint32_t random_bits = 0);

/// Answer of a comparison, and the flags it raised.
struct FlaggedBool {
  bool value = false;
  std::uint8_t flags = 0;
};
/// False where an operand is NaN; only a signalling one is invalid (compareQuietEqual).
[[nodiscard]] FlaggedBool equal(float a, float b);
/// False and invalid where an operand is NaN (compareSignalingLess, compareSignalingLessEqual).
[[nodiscard]] FlaggedBool less(float a, float b);
[[nodiscard]] FlaggedBool less_equal(float a, float b);

}  // namespace halfscope
