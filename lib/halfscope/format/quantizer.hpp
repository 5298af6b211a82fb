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

/// Most random bits that "stochastic(N)" counts.
inline constexpr int most_random_bits = 16;

/// A value: comparable, usable as a template argument, printable and parseable ("fp16",
/// "fp8_e4m3/stochastic/saturate", "fp4_e2m1/stochastic(8)").
struct Quantizer {
  FloatFormat format{};
  Rounding rounding = Rounding::nearest_even;
  Overflow overflow = Overflow::infinity;
  int random_bits = 0;  ///< for stochastic rounding: 1 to most_random_bits; 0: all bits that are drawn

  friend constexpr bool operator==(const Quantizer&, const Quantizer&) = default;
  /// True where rounding a float changes nothing but NaN payloads: fp32 with gradual underflow.
  [[nodiscard]] constexpr bool is_identity() const {
    return format == FloatFormat{} && overflow == Overflow::infinity;
  }
};

/// "fp16", "e5m2", "e4m3fn", "p3109_k8p4se": the catalogue's name where it has one, else exponent and
/// mantissa bits with a bias that is not the usual one ("b11"), "fn" (NaN only), "f" (finite only) or "fnuz",
/// and
/// "_ftz" (subnormals flushed) appended; formats without a sign bit begin with "u". Formats of IEEE P3109
/// that have no such name have its own: K bits, precision P, signed or unsigned, finite or extended.
[[nodiscard]] std::string to_string(const FloatFormat& format);
/// The format called `name`; throws InvalidArgument with the nearest valid name.
[[nodiscard]] FloatFormat parse_format(std::string_view name);
/// A sentence for a format that others give another meaning: "e4m3 ends at 240; fp8_e4m3 is OCP's, which ends
/// at 448". Empty for all others.
[[nodiscard]] std::string look_alike_note(const FloatFormat& format);

/// "FORMAT[/ROUNDING][/OVERFLOW]", defaults left out.
[[nodiscard]] std::string to_string(const Quantizer& quantizer);
[[nodiscard]] Quantizer parse_quantizer(std::string_view text);

}  // namespace halfscope
