// CUDA's entry points for memory: allocation, copies, fills.
#include <cuda_runtime_api.h>

#include <cstdlib>

#include "tests/ptx/runtime/runtime.hpp"

namespace {

using halfscope::ptx::runtime;

constexpr std::size_t memory_bytes = std::size_t{8} << 30;  // as a small device reports it

std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  *memory = reinterpret_cast<void*>(runtime().allocate(bytes));
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t) {
  if (bytes > memory_bytes) return cudaErrorMemoryAllocation;
  return cudaMalloc(memory, bytes);
}
cudaError_t cudaFree(void* memory) {
  runtime().free(address_of(memory));
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  runtime().enqueue(stream, [memory] { runtime().free(address_of(memory)); });
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  *memory = std::malloc(bytes);
  return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  runtime().copy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  runtime().enqueue(stream, [=] { runtime().copy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  runtime().enqueue(stream, [=] { runtime().fill(to, value, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
                              cudaStream_t stream) {
  runtime().enqueue(stream, [=] {
    for (std::size_t row = 0; row < height; ++row)
      runtime().fill(static_cast<char*>(to) + row * pitch, value, width);
  });
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = memory_bytes;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  *pool = nullptr;
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return cudaSuccess;
}

}  // extern "C"
