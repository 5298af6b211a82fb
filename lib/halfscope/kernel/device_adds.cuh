// Adds in a format for the sums of kernels on the device: the fastest that it has for each.
#pragma once

#include <halfscope/arithmetic/ordered_sum.hpp>

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#endif

namespace halfscope::cuda {

/// Of FP32 itself; a NaN may keep its payload.
struct Fp32Adds {
  [[nodiscard]] HALFSCOPE_HD float rounded(float x) const { return x; }
  [[nodiscard]] HALFSCOPE_HD float add(float a, float b) const { return a + b; }
};

/// Of FP16, by the device's conversions.
struct Fp16Adds {
  [[nodiscard]] HALFSCOPE_HD float rounded(float x) const {
#if defined(__CUDA_ARCH__)
    return __half2float(__float2half_rn(x));
#else
    return round_on_grid<Rounding::nearest_even>(x, rounding_grid({.format = {5, 10}}));
#endif
  }
  [[nodiscard]] HALFSCOPE_HD float add(float a, float b) const {
    return rounded(a + b);
  }
};

/// Calls body(adds) with the adds of `format`, to nearest even.
template <typename Body>
void with_adds(const FloatFormat& format, const Body& body) {
  if (format == FloatFormat{}) return body(Fp32Adds{});
  if (format == FloatFormat{5, 10}) return body(Fp16Adds{});
  body(RoundedAdds{rounding_grid({.format = format})});
}

}  // namespace halfscope::cuda
