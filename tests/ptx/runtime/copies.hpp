// Copies between host and device memory, each carried out or queued as CUDA's "API synchronization behavior"
// says of its ends.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "tests/ptx/runtime/runtime.hpp"

namespace halfscope::ptx {

/// Arguments of cudaMemcpy.
struct Copy {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
  cudaMemcpyKind kind = cudaMemcpyDefault;
};

/// cudaMemcpyAsync. Pageable memory is read before it returns, and written too; page-locked memory is read
/// and written when the stream comes to it. Until then the target keeps its bytes: to fill it with others
/// would change what an earlier copy of the stream may still have to read. In a capture both are read and
/// written by each launch of the graph.
cudaError_t queue_copy(Runtime& device, const Copy& copy, cudaStream_t stream);

/// cudaMemcpy. It is work of the legacy stream that the host waits for, with two exceptions: copies within
/// the device, and the way of pageable bytes from where they are staged to the device.
cudaError_t copy_and_wait(Runtime& device, const Copy& copy);

}  // namespace halfscope::ptx
