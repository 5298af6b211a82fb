// The bit patterns of a format: a number's code, and the number that a code stands for.
#pragma once

#include <bit>
#include <cstdint>

#include <halfscope/format/bits.hpp>
#include <halfscope/format/float_format.hpp>

namespace halfscope {

/// Bits of a code: 16 for fp16.
[[nodiscard]] constexpr int code_width(const FloatFormat& format) {
  return (format.sign == SignBit::present ? 1 : 0) + format.exponent_bits + format.mantissa_bits;
}

/// Whether `x` is a NaN whose quiet bit is clear: an operation on it is invalid (IEEE 754-2019, 6.2).
[[nodiscard]] constexpr bool is_signalling(float x) {
  return magnitude_bits(x) > infinity_bits && (to_bits(x) & 0x00400000u) == 0;
}

/// Half way from the largest number to what would come next: 65520 for fp16.
[[nodiscard]] constexpr double overflow_limit(const FloatFormat& format) {
  return double{from_bits(format.max_finite_bits())} +
         power_of_two(format.max_exponent() - format.mantissa_bits - 1);
}

/// Whether nearest_even takes the limit itself beyond the largest number, whose last bit is then 1.
[[nodiscard]] constexpr bool limit_overflows(const FloatFormat& format) {
  return format.max_finite_code() % 2 == 1;
}

namespace detail {
/// The code of `format`'s one NaN. A format without NaN has its largest number there, which is what the
/// conversions of NVIDIA GPUs return.
constexpr std::uint32_t nan_code(const FloatFormat& format) {
  const std::uint32_t all_ones = (1u << (format.exponent_bits + format.mantissa_bits)) - 1u;
  if (format.specials == Specials::ieee) return all_ones & ~((1u << (format.mantissa_bits - 1)) - 1u);
  const bool negative_zero = format.specials == Specials::fnuz || format.specials == Specials::extended;
  return negative_zero && format.sign == SignBit::present ? all_ones + 1u : all_ones;
}

/// Whether `code`, sign bit included, stands for a NaN.
constexpr bool is_nan_code(std::uint32_t code, const FloatFormat& format) {
  const std::uint32_t all_ones = (1u << (format.exponent_bits + format.mantissa_bits)) - 1u;
  if (format.specials == Specials::ieee) return (code & all_ones) > format.max_finite_code() + 1u;
  if (format.specials == Specials::nan_only) return (code & all_ones) == all_ones;
  return format.has_nan() && code == nan_code(format);
}

/// Whether `code` stands for an infinity: the one after the largest number, where there are any.
constexpr bool is_infinity_code(std::uint32_t code, const FloatFormat& format) {
  const std::uint32_t all_ones = (1u << (format.exponent_bits + format.mantissa_bits)) - 1u;
  return format.has_infinity() && (code & all_ones) == format.max_finite_code() + 1u;
}
}  // namespace detail

/// The code of `x`, which must be a number of `format`, an infinity where it has one, or NaN; every NaN gets
/// the code of the positive quiet one, and -0 that of +0 where zero has no sign.
[[nodiscard]] constexpr std::uint32_t encode(float x, const FloatFormat& format) {
  const std::uint32_t magnitude = magnitude_bits(x);
  if (magnitude > infinity_bits) return detail::nan_code(format);
  const int m = format.mantissa_bits;
  const bool is_signed = magnitude != 0 ? format.sign == SignBit::present : format.has_signed_zero();
  const std::uint32_t sign = is_signed ? (to_bits(x) >> 31) << (format.exponent_bits + m) : 0u;
  if (magnitude == infinity_bits) return sign | (format.max_finite_code() + 1u);
  const int field = magnitude >> 23 != 0 ? static_cast<int>(magnitude >> 23) : 1;
  const std::uint32_t significand = magnitude - (static_cast<std::uint32_t>(field - 1) << 23);
  const int below_normal = format.min_exponent() - (field - 127);
  const auto dropped = static_cast<std::uint32_t>(23 - m + (below_normal > 0 ? below_normal : 0));
  const auto base = static_cast<std::uint32_t>(below_normal > 0 ? 0 : -below_normal) << m;
  return sign | (base + (dropped < 32 ? significand >> dropped : 0u));
}

/// The number of `code`, of which the lowest `code_width` bits count; a NaN keeps its quiet bit where the
/// format has several. Where subnormals are flushed, their codes are zeros.
[[nodiscard]] constexpr float decode(std::uint32_t code, const FloatFormat& format) {
  const int m = format.mantissa_bits, bits = code_width(format);
  code &= bits < 32 ? (1u << bits) - 1u : ~0u;
  const std::uint32_t mantissa = code & ((1u << m) - 1u);
  const std::uint32_t field = (code >> m) & ((1u << format.exponent_bits) - 1u);
  const bool negative = format.sign == SignBit::present && (code >> (bits - 1)) != 0;
  const std::uint32_t sign = negative ? sign_bit : 0u;
  const std::uint32_t payload = mantissa << (23 - m);
  if (detail::is_nan_code(code, format)) {
    const bool one_code =
        payload == 0 || format.specials == Specials::fnuz || format.specials == Specials::extended;
    return from_bits(one_code ? quiet_nan_bits : sign | infinity_bits | payload);
  }
  if (detail::is_infinity_code(code, format)) return from_bits(sign | infinity_bits);
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

/// E8M0, the scales of OCP's MX formats: 2^(code - 127), no sign, no zero; the last code is NaN.
namespace e8m0 {

inline constexpr std::uint32_t nan_code = 0xFF, largest_code = 0xFE, bias = 127;

/// The number of `code`, of which the lowest eight bits count.
[[nodiscard]] constexpr float decode(std::uint32_t code) {
  code &= 0xFFu;
  if (code == nan_code) return from_bits(quiet_nan_bits);
  return code == 0 ? 0x1p-127f : from_bits(code << 23);
}

/// The code of 2^exponent, the least one for what lies below, NaN's for what lies beyond.
[[nodiscard]] constexpr std::uint32_t code_of_exponent(int exponent) {
  const int code = exponent + static_cast<int>(bias);
  return code < 0 ? 0u : code > static_cast<int>(largest_code) ? nan_code : static_cast<std::uint32_t>(code);
}

/// The code nearest to the magnitude of `x`, the larger one of two; zero has the least, infinity and what
/// rounds beyond 2^127 NaN's. PyTorch's cast to float8_e8m0fnu.
[[nodiscard]] constexpr std::uint32_t encode_nearest(float x) {
  const std::uint32_t magnitude = magnitude_bits(x);
  if (magnitude > infinity_bits - 0x400000u) return nan_code;
  // Below 2^-126 the float has no leading one: half way from 2^-127 to 2^-126 is 3 * 2^-128.
  return magnitude < 0x00800000u ? (magnitude >= 0x00600000u ? 1u : 0u) : (magnitude + 0x400000u) >> 23;
}

}  // namespace e8m0

}  // namespace halfscope
