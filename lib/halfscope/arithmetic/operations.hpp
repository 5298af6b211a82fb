// Correctly rounded operations on the numbers of any format, with the flags that IEEE 754 asks for.
#pragma once

#include <cstdint>

#include <halfscope/arithmetic/round_exact.hpp>

namespace halfscope {

// Each operation is worked out exactly, then rounded once to the format of `q` in its rounding and overflow
// policy, so the operands may be any floats; `random_bits` are used by Rounding::stochastic alone. A NaN
// result is the positive quiet NaN. A signalling NaN among the operands raises invalid.
// Source: IEEE 754-2019, clauses 5.4.1, 6.3 and 7.

[[nodiscard]] Flagged add(float a, float b, const Quantizer& q, std::uint32_t random_bits = 0);
[[nodiscard]] Flagged sub(float a, float b, const Quantizer& q, std::uint32_t random_bits = 0);
[[nodiscard]] Flagged mul(float a, float b, const Quantizer& q, std::uint32_t random_bits = 0);
/// A number divided by zero raises divide_by_zero alone and is what an infinite result becomes in the format.
[[nodiscard]] Flagged div(float a, float b, const Quantizer& q, std::uint32_t random_bits = 0);
[[nodiscard]] Flagged sqrt(float a, const Quantizer& q, std::uint32_t random_bits = 0);
/// a * b + c, rounded once. Infinity times zero raises invalid whatever `c` is, NaN included.
[[nodiscard]] Flagged fma(float a, float b, float c, const Quantizer& q, std::uint32_t random_bits = 0);
/// a - n b with n the integer nearest to a / b, the even one of two; exact in the operands' format.
[[nodiscard]] Flagged rem(float a, float b, const Quantizer& q, std::uint32_t random_bits = 0);
/// `a` brought to another format: `round` with flags.
[[nodiscard]] Flagged convert(float a, const Quantizer& q, std::uint32_t random_bits = 0);

/// Whether a rounding to an integer that changes the number is worth a flag.
enum class InexactFlag : std::uint8_t {
  raised,   ///< roundToIntegralExact
  ignored,  ///< roundToIntegralTiesToEven and its relatives
};
/// `a` rounded to an integer in the direction of `q`, zero with the sign of `a`.
[[nodiscard]] Flagged round_to_integral(float a, const Quantizer& q,
                                        InexactFlag inexact = InexactFlag::raised,
                                        std::uint32_t random_bits = 0);

/// What a comparison says, and the flags it raised.
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
