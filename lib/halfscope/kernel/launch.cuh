// Starts CUDA kernels over element indices, and turns CUDA errors into exceptions.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include <halfscope/core/error.hpp>

namespace halfscope::cuda {

/// Throws RunError saying what failed and why, unless `status` is success.
inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw RunError(std::string(what) + ": " + cudaGetErrorString(status));
}

template <typename Body>
__global__ void for_each_kernel(std::int64_t count, Body body) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) body(i);
}

/// Queues body(i) once for each i in [0, count); `body` is copied to the device and must own its outputs, so
/// that no result depends on the order. `what` names the operation in the RunError of a launch that fails.
template <typename Body>
void for_each(std::int64_t count, const Body& body, cudaStream_t stream, const char* what) {
  if (count <= 0) return;  // an empty grid is an error to CUDA
  constexpr std::int64_t threads = 256;
  constexpr std::int64_t most_blocks = 1
                                       << 16;  // enough to fill any device; the kernel strides over the rest
  const auto blocks = static_cast<unsigned>(std::min((count + threads - 1) / threads, most_blocks));
  for_each_kernel<<<blocks, threads, 0, stream>>>(count, body);
  check(cudaGetLastError(), what);
}

}  // namespace halfscope::cuda
