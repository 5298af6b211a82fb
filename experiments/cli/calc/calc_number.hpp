// The operands of `halfscope calc`: bit patterns and decimals.
#pragma once

#include <string>
#include <string_view>

#include <halfscope/arithmetic/round_exact.hpp>

namespace halfscope {

/// Whether `text` is meant as a bit pattern: it starts with 0x and is no hex float.
[[nodiscard]] bool is_bit_pattern(std::string_view text);

/// The number of `format` with the bits of `text`, "0x3c00". Throws InvalidArgument for anything but hex
/// digits and for more bits than the format has.
[[nodiscard]] float parse_bit_pattern(std::string_view text, const FloatFormat& format);

/// A decimal or hex float ("-1.5", ".5e-3", "0x1.8p-3", "inf", "nan") rounded once, as `q` says.
[[nodiscard]] Flagged round_decimal(std::string_view text, const Quantizer& q, std::uint32_t random_bits);

/// An operand of `format`: a bit pattern, or a decimal rounded to its nearest number.
[[nodiscard]] float parse_operand(std::string_view text, const FloatFormat& format);

/// `text` in quotes for a message: at most 40 bytes of it, see `escaped`.
[[nodiscard]] std::string quoted(std::string_view text);

}  // namespace halfscope
