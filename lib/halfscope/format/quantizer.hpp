// How a number is brought into a format: the format, the rounding, and what an overflow becomes.
#pragma once

#include <string>
#include <string_view>

#include <halfscope/core/names.hpp>
#include <halfscope/format/float_format.hpp>

namespace halfscope {

enum class Rounding : std::uint8_t { nearest_even, nearest_away, toward_zero, up, down, to_odd, stochastic };
template <>
inline constexpr std::array<std::string_view, 7> enum_names<Rounding>{
    "nearest_even", "nearest_away", "toward_zero", "up", "down", "to_odd", "stochastic"};

enum class Overflow : std::uint8_t { infinity, saturate };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<Overflow>{"infinity", "saturate"};

/// A value: comparable, usable as a template argument, printable and parseable ("fp16",
/// "fp8_e4m3/stochastic/saturate").
struct Quantizer {
  FloatFormat format{};
  Rounding rounding = Rounding::nearest_even;
  Overflow overflow = Overflow::infinity;

  friend constexpr bool operator==(const Quantizer&, const Quantizer&) = default;
  /// True where rounding a float changes nothing but NaN payloads: fp32 with gradual underflow.
  [[nodiscard]] constexpr bool is_identity() const {
    return format == FloatFormat{} && overflow == Overflow::infinity;
  }
};

/// "fp16", "e5m2", "e4m3fn": the catalogue's name where it has one, else exponent and mantissa bits with
/// "fn" (NaN only) or "f" (finite only) and "_ftz" (subnormals flushed) appended.
[[nodiscard]] std::string to_string(const FloatFormat& format);
/// The format called `name`; throws InvalidArgument with the nearest valid name.
[[nodiscard]] FloatFormat parse_format(std::string_view name);

/// "FORMAT[/ROUNDING][/OVERFLOW]", defaults left out.
[[nodiscard]] std::string to_string(const Quantizer& quantizer);
[[nodiscard]] Quantizer parse_quantizer(std::string_view text);

}  // namespace halfscope
