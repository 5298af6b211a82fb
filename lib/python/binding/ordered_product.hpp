// Matrix products in any order of accumulation, pairwise and kahan included.
#pragma once

#include <span>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>
#include <halfscope/kernel/gemm/gemm_batch.hpp>

namespace halfscope::python {

/// c = a b as `gemm` has it; pairwise and kahan go element by element. Throws as `gemm` does.
void multiply(const GatherMatrix& a, const DenseMatrix& b, std::span<float> c, const AccumulateModel& model);

/// c[n] = a[n] b[n] as `gemm_batch` has it; pairwise and kahan go element by element. Throws as `gemm_batch`
/// does.
void multiply_batch(const StridedMatrices& a, const StridedMatrices& b, std::span<float> c,
                    const AccumulateModel& model);

}  // namespace halfscope::python
