// The loops of products as tensor cores add them up, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/gemm/detail/gemm_simd.hpp>

namespace halfscope {

/// Whether these loops have the step: those of GPUs with FP32 sums do.
[[nodiscard]] constexpr bool has_tensor_core_lanes(const TensorCoreStep& step) {
  constexpr int least_exponent = -126, fewest_bits = 23, most_bits = 25;
  if (step.output != fp32 || step.rounding != Rounding::toward_zero || step.zero_exponent >= least_exponent ||
      step.fraction_bits > most_bits)
    return false;
  if (step.input == fp8_e4m3 || step.input == fp8_e5m2)
    return (step.products == 16 || step.products == 32) && step.result.exponent_bits == fp32.exponent_bits;
  const bool has_width = step.products == 4 || step.products == 8 || step.products == 16;
  return has_width && step.result == fp32 && step.input.mantissa_bits <= 11 &&
         step.fraction_bits >= fewest_bits;
}

/// Part of c = a b in one thread, as a tensor core with this step, which has lanes, computes it.
template <Isa isa>
void gemm_tensor_core_range_isa(const GatherMatrix& a, const RightMatrix& b, float* c,
                                const OutputRange& range, const TensorCoreStep& step);

}  // namespace halfscope
