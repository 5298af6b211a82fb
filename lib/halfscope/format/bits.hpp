// The bit pattern of a float, and the patterns that rounding needs by name.
#pragma once

#include <bit>
#include <cstdint>

#include <halfscope/core/host_device.hpp>

namespace halfscope {

inline constexpr std::uint32_t sign_bit = 0x80000000u;
inline constexpr std::uint32_t infinity_bits = 0x7F800000u;
inline constexpr std::uint32_t quiet_nan_bits =
    0x7FC00000u;  ///< the one NaN that rounding returns and files hold

[[nodiscard]] HALFSCOPE_HD constexpr std::uint32_t to_bits(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
[[nodiscard]] HALFSCOPE_HD constexpr float from_bits(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
[[nodiscard]] HALFSCOPE_HD constexpr std::uint32_t magnitude_bits(float x) {
  return to_bits(x) & ~sign_bit;
}
/// `x`, or the one NaN. IEEE 754-2019 (6.2.3, 6.3) leaves a NaN's payload and sign open, and processors
/// differ: x86 returns an operand or 0xFFC00000, a GPU 0x7FFFFFFF.
[[nodiscard]] HALFSCOPE_HD constexpr float with_one_nan(float x) {
  return x == x ? x : from_bits(quiet_nan_bits);
}
/// Zero bits before the first one; 64 of zero.
[[nodiscard]] HALFSCOPE_HD constexpr int leading_zeros(std::uint64_t x) {
#if defined(__CUDA_ARCH__)
  return __clzll(static_cast<long long>(x));
#else
  return std::countl_zero(x);
#endif
}
/// 2^exponent, a normal double.
[[nodiscard]] HALFSCOPE_HD constexpr double power_of_two(int exponent) {
  return __builtin_bit_cast(double, static_cast<std::uint64_t>(exponent + 1023) << 52);
}

}  // namespace halfscope
