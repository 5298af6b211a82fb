// Adds in a format for the sums of kernels on the device: the fastest that it has for each.
#pragma once

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/arithmetic/detail/ordered_sum.hpp>
#include <halfscope/format/formats.hpp>

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#endif

namespace halfscope::cuda {

/// Adds in FP32 itself; a NaN may keep its payload.
struct Fp32Adds {
  [[nodiscard]] HALFSCOPE_HD float rounded(float x) const { return x; }
  [[nodiscard]] HALFSCOPE_HD float add(float a, float b) const { return a + b; }
};

/// Adds in FP16, by the device's conversions.
struct Fp16Adds {
  [[nodiscard]] HALFSCOPE_HD float rounded(float x) const {
#if defined(__CUDA_ARCH__)
    return __half2float(__float2half_rn(x));
#else
    return round_on_grid<Rounding::nearest_even>(x, rounding_grid({.format = fp16}));
#endif
  }
  [[nodiscard]] HALFSCOPE_HD float add(float a, float b) const {
    return rounded(a + b);
  }
};

/// c + a b, both operations rounded.
template <typename Adds>
struct MulThenAdd {
  Adds adds;
  [[nodiscard]] HALFSCOPE_HD float add_product(float c, float a, float b) const {
    return adds.add(c, adds.rounded(a * b));
  }
};

/// c + a b rounded once, to FP32.
struct FusedFp32 {
  [[nodiscard]] HALFSCOPE_HD float add_product(float c, float a, float b) const {
    return __builtin_fmaf(a, b, c);
  }
};

/// c + a b rounded to odd in FP32, which any rounding to 22 significand bits or fewer takes for exact.
[[nodiscard]] HALFSCOPE_HD float fused_to_odd(float c, float a, float b) {
#if defined(__CUDA_ARCH__)
  // The odd one of the results rounded down and up, which are neighbours unless they are equal.
  const float down = __fmaf_rd(a, b, c);
  return (to_bits(down) & 1) != 0 ? down : __fmaf_ru(a, b, c);
#else
  const double product = double{a} * double{b};  // exact
  const double sum = product + double{c}, c_part = sum - product;
  const double error = (product - (sum - c_part)) + (double{c} - c_part);
  const auto nearest = static_cast<float>(sum);
  // Error of the float nearest to the sum; NaN where that is no number, or infinite.
  const double missing = (sum - double{nearest}) != 0 ? sum - double{nearest} : error;
  const bool overflows = magnitude_bits(nearest) == infinity_bits && sum - sum == 0;
  if (overflows) return from_bits((to_bits(nearest) & sign_bit) | (infinity_bits - 1));
  if (!(missing < 0) && !(missing > 0)) return nearest;
  const bool negative = nearest == 0 ? missing < 0 : nearest < 0;
  const bool too_far = nearest != 0 && (missing < 0) != negative;
  const std::uint32_t magnitude = magnitude_bits(nearest) - (too_far ? 1 : 0);
  return from_bits((negative ? sign_bit : 0u) | magnitude | 1u);
#endif
}

/// c + a b rounded once, to a format of at most 22 significand bits.
template <typename Adds>
struct FusedByOdd {
  Adds adds;
  [[nodiscard]] HALFSCOPE_HD float add_product(float c, float a, float b) const {
    return adds.rounded(fused_to_odd(c, a, b));
  }
};

/// Calls body(adds) with the adds of `format`, which is narrower than FP32, to nearest even.
template <typename Body>
void with_rounded_adds(const FloatFormat& format, const Body& body) {
  if (format == fp16) return body(Fp16Adds{});
  body(RoundedAdds{rounding_grid({.format = format})});
}

/// Calls body(adds) with the adds of `format`, to nearest even.
template <typename Body>
void with_adds(const FloatFormat& format, const Body& body) {
  if (format == FloatFormat{}) return body(Fp32Adds{});
  with_rounded_adds(format, body);
}

/// Calls body(step) with the sum of a number and a product in `format`, which are rounded one after the
/// other.
template <typename Body>
void with_separate_steps(const FloatFormat& format, const Body& body) {
  with_adds(format, [&]<typename Adds>(const Adds& adds) { body(MulThenAdd<Adds>{adds}); });
}

/// The same rounded once.
template <typename Body>
void with_fused_steps(const FloatFormat& format, const Body& body) {
  if (format == FloatFormat{}) return body(FusedFp32{});
  with_rounded_adds(format, [&]<typename Adds>(const Adds& adds) { body(FusedByOdd<Adds>{adds}); });
}

}  // namespace halfscope::cuda
