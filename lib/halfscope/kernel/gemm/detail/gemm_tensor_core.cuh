// Matrix products on the device as a tensor core of any generation adds them up.
#pragma once

#include <halfscope/kernel/gemm/detail/gemm_tile.cuh>

namespace halfscope::cuda {

/// c = a b in steps of `model`'s tensor core.
void tensor_core_gemm(const Matrices& matrices, const AccumulateModel& model);

}  // namespace halfscope::cuda
