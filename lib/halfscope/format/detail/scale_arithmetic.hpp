// Exponents and scales that several scale rules compute.
#pragma once

#include <algorithm>
#include <limits>

#include <halfscope/format/block_format.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/round.hpp>

namespace halfscope::detail {

inline constexpr float largest_float = std::numeric_limits<float>::max();

/// floor(log2 x) of a finite x > 0, subnormal or not.
[[nodiscard]] inline int floor_log2(float x) {
  const std::uint32_t bits = magnitude_bits(x);
  const int field = static_cast<int>(bits >> 23);
  return field > 0 ? field - 127 : 31 - (leading_zeros(bits) - 32) - 149;
}
/// ceil(log2 x).
[[nodiscard]] inline int ceil_log2(float x) {
  const int exponent = floor_log2(x);
  return exponent + (double{x} > power_of_two(exponent) ? 1 : 0);
}

[[nodiscard]] inline float largest_number(const FloatFormat& format) {
  return from_bits(format.max_finite_bits());
}

/// The E8M0 scale 2^exponent, brought into its range; elements are multiplied by 2^-exponent, which is exact.
[[nodiscard]] inline BlockScales e8m0_scale(int exponent) {
  const std::uint32_t code = e8m0::code_of_exponent(exponent);
  if (code == e8m0::nan_code) {
    const float nan = from_bits(quiet_nan_bits);
    return {{code, nan, nan}};
  }
  return {{code, e8m0::decode(code), static_cast<float>(power_of_two(127 - static_cast<int>(code)))}};
}

/// E8M0 of a block: NaN's where it has a NaN or an infinity, the least one for zeros, else by `exponent_of`.
template <typename ExponentOf>
[[nodiscard]] BlockScales e8m0_scale_of(const BlockMaximum& block, ExponentOf exponent_of) {
  constexpr int beyond_all = 1000;
  if (block.has_nan || block.amax > largest_float) return e8m0_scale(beyond_all);
  return e8m0_scale(block.amax == 0 ? -beyond_all : exponent_of(block.amax, block.element));
}

/// An FP32 scale and the factor of the elements.
[[nodiscard]] inline BlockScales fp32_scale(float scale, float factor) {
  scale = with_one_nan(scale);
  return {{to_bits(scale), scale, factor}};
}

/// The UE4M3 code nearest to `x`, its number, and the factor that a rule makes of that.
[[nodiscard]] inline BlockScale ue4m3_block(float x, const TensorFactors& tensor,
                                            float (*element_factor)(float, const TensorFactors&)) {
  const float scale = round(x, {.format = ue4m3, .overflow = Overflow::saturate});
  return {encode(scale, ue4m3), scale, element_factor(scale, tensor)};
}

inline constexpr float largest_ue4m3 = 448, largest_e2m1 = 6;

}  // namespace halfscope::detail
