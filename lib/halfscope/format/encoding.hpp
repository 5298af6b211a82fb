// The bit patterns of a format: a number's code, and the number that a code stands for.
#pragma once

#include <bit>
#include <cstdint>

#include <halfscope/format/bits.hpp>
#include <halfscope/format/float_format.hpp>

namespace halfscope {

/// Bits of a code: 16 for fp16.
[[nodiscard]] constexpr int code_width(const FloatFormat& format) {
  return 1 + format.exponent_bits + format.mantissa_bits;
}

/// Whether `x` is a NaN whose quiet bit is clear: an operation on it is invalid (IEEE 754-2019, 6.2).
[[nodiscard]] constexpr bool is_signalling(float x) {
  return magnitude_bits(x) > infinity_bits && (to_bits(x) & 0x00400000u) == 0;
}

namespace detail {
/// The code of `format`'s one NaN. A format without NaN has its largest number there, which is what the
/// conversions of NVIDIA GPUs return.
constexpr std::uint32_t nan_code(const FloatFormat& format) {
  const std::uint32_t all_ones = (1u << (format.exponent_bits + format.mantissa_bits)) - 1u;
  const bool ieee = format.specials == Specials::ieee;
  return ieee ? all_ones & ~((1u << (format.mantissa_bits - 1)) - 1u) : all_ones;
}
}  // namespace detail

/// The code of `x`, which must be a number of `format`, an infinity where it has one, or NaN; every NaN gets
/// the code of the positive quiet one.
[[nodiscard]] constexpr std::uint32_t encode(float x, const FloatFormat& format) {
  const std::uint32_t magnitude = magnitude_bits(x);
  if (magnitude > infinity_bits) return detail::nan_code(format);
  const int m = format.mantissa_bits;
  const std::uint32_t sign = (to_bits(x) >> 31) << (format.exponent_bits + m);
  if (magnitude == infinity_bits) return sign | (((1u << format.exponent_bits) - 1u) << m);
  const int field = magnitude >> 23 != 0 ? static_cast<int>(magnitude >> 23) : 1;
  const std::uint32_t significand = magnitude - (static_cast<std::uint32_t>(field - 1) << 23);
  const int below_normal = format.min_exponent() - (field - 127);
  const auto dropped = static_cast<std::uint32_t>(23 - m + (below_normal > 0 ? below_normal : 0));
  const auto base = static_cast<std::uint32_t>(below_normal > 0 ? 0 : -below_normal) << m;
  return sign | (base + (dropped < 32 ? significand >> dropped : 0u));
}

/// The number of `code`, of which the lowest `code_width` bits count; a NaN keeps its quiet bit. Where
/// subnormals are flushed, their codes are zeros.
[[nodiscard]] constexpr float decode(std::uint32_t code, const FloatFormat& format) {
  const int m = format.mantissa_bits;
  const std::uint32_t mantissa = code & ((1u << m) - 1u);
  const std::uint32_t top_field = (1u << format.exponent_bits) - 1u;
  const std::uint32_t field = (code >> m) & top_field;
  const std::uint32_t sign = ((code >> (format.exponent_bits + m)) & 1u) << 31;
  const std::uint32_t payload = mantissa << (23 - m);
  if (field == top_field && format.specials == Specials::ieee) {
    return from_bits(sign | infinity_bits | payload);
  }
  if (field == top_field && format.specials == Specials::nan_only && mantissa == (1u << m) - 1u) {
    return from_bits(sign | infinity_bits | payload);
  }
  if (field != 0) {
    const auto exponent = static_cast<std::uint32_t>(static_cast<int>(field) - format.bias() + 127);
    return from_bits(sign | (exponent << 23) | payload);
  }
  if (mantissa == 0 || format.subnormals == Subnormals::flush_to_zero) return from_bits(sign);
  if (format.exponent_bits == 8) return from_bits(sign | payload);  // FP32's subnormals too
  const int width = 32 - std::countl_zero(mantissa);
  const auto exponent = static_cast<std::uint32_t>(format.min_exponent() - m + width - 1 + 126);
  return from_bits(sign | ((exponent << 23) + (mantissa << (24 - width))));
}

}  // namespace halfscope
