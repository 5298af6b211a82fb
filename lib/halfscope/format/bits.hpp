// The bit pattern of a float, and the patterns that rounding needs by name.
#pragma once

#include <bit>
#include <cstdint>

#include <halfscope/core/host_device.hpp>

namespace halfscope {

inline constexpr std::uint32_t sign_bit = 0x80000000u;
inline constexpr std::uint32_t infinity_bits = 0x7F800000u;
inline constexpr std::uint32_t quiet_nan_bits = 0x7FC00000u;  ///< the one NaN that rounding returns

[[nodiscard]] HALFSCOPE_HD constexpr std::uint32_t to_bits(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
[[nodiscard]] HALFSCOPE_HD constexpr float from_bits(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
[[nodiscard]] HALFSCOPE_HD constexpr std::uint32_t magnitude_bits(float x) {
  return to_bits(x) & ~sign_bit;
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
