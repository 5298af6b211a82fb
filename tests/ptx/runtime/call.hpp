// Frame of CUDA's entry points: one call at a time, its error remembered for cudaGetLastError.
#pragma once

#include <cuda_runtime_api.h>

#include <mutex>

#include "tests/ptx/runtime/runtime.hpp"

namespace halfscope::ptx {

/// This thread's last error.
[[nodiscard]] inline cudaError_t& last_error() {
  thread_local cudaError_t last = cudaSuccess;
  return last;
}

/// Runs body(runtime), which returns the call's status.
template <typename Body>
cudaError_t call(const Body& body) {
  const std::scoped_lock lock(runtime().mutex());
  const cudaError_t status = body(runtime());
  if (status != cudaSuccess) last_error() = status;
  return status;
}

}  // namespace halfscope::ptx
