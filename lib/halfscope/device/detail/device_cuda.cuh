// CUDA calls that are checked, and the stream on which everything is queued.
#pragma once

#include <cuda_runtime.h>

#include <source_location>

#include <halfscope/core/error.hpp>

namespace halfscope::cuda {

/// Throws RuntimeFailure unless `status` is success: what was done, why it failed, and where in the source.
void check(cudaError_t status, const char* what,
           std::source_location where = std::source_location::current());

/// This thread's stream; kernels and copies on it run in the order in which they are queued.
[[nodiscard]] cudaStream_t stream();

/// Compute capability of the current device: 90 for 9.0.
[[nodiscard]] int compute_capability();

}  // namespace halfscope::cuda
