// The loops of products as tensor cores add them up, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/gemm/detail/gemm_simd.hpp>

namespace halfscope {

/// Part of c = a b in one thread, as a tensor core with this step computes it.
template <Isa isa>
void gemm_tensor_core_range_isa(const GatherMatrix& a, const RightMatrix& b, float* c,
                                const OutputRange& range, const TensorCoreStep& step);

}  // namespace halfscope
