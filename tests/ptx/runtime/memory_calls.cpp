// CUDA's entry points for memory: allocation, copies, fills.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "tests/ptx/runtime/call.hpp"
#include "tests/ptx/runtime/copies.hpp"

namespace {

using halfscope::ptx::address_of;
using halfscope::ptx::call;
using halfscope::ptx::copy_and_wait;
using halfscope::ptx::is_device_address;
using halfscope::ptx::MemorySource;
using halfscope::ptx::OperationKind;
using halfscope::ptx::queue_copy;
using halfscope::ptx::Runtime;

constexpr std::size_t memory_bytes = std::size_t{8} << 30;  // as a small device reports it

cudaError_t allocate(Runtime& device, void** memory, std::size_t bytes, MemorySource source) {
  if (bytes > memory_bytes) return cudaErrorMemoryAllocation;
  *memory = reinterpret_cast<void*>(device.allocate(bytes, source));
  return cudaSuccess;
}

/// Work that does nothing: its stream may refuse it.
cudaError_t queue_nothing(Runtime& device, cudaStream_t stream, const char* name) {
  return device.streams().queue(stream, {OperationKind::other, name, [] {}});
}

/// Rows of a fill, `pitch` bytes apart.
struct Fill {
  void* to;
  std::size_t pitch, width, height;
};

cudaError_t queue_fill(Runtime& device, const Fill& fill, int value, cudaStream_t stream) {
  if (!is_device_address(address_of(fill.to)) || fill.pitch < fill.width) return cudaErrorInvalidValue;
  const auto run = [&device, fill, value] {
    for (std::size_t row = 0; row < fill.height; ++row)
      device.fill(static_cast<char*>(fill.to) + row * fill.pitch, value, fill.width);
  };
  const bool is_flat = fill.height == 1;
  std::string name = is_flat ? "fill" : fmt::format("fill of {} by {}", fill.height, fill.width);
  return device.streams().queue(stream, {OperationKind::fill, std::move(name), run});
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return call([&](Runtime& device) {
    if (const cudaError_t error = device.streams().unsafe()) return error;
    return allocate(device, memory, bytes, MemorySource::device);
  });
}
/// Refused in a capture: graphs have no nodes of memory here.
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream) {
  return call([&](Runtime& device) {
    if (device.streams().is_captured(stream)) return cudaErrorNotSupported;
    if (const cudaError_t error = queue_nothing(device, stream, "cudaMallocAsync")) return error;
    return allocate(device, memory, bytes, MemorySource::pool);
  });
}
/// Waits for the device first, as GPUs do. For memory of the pool CUDA's documentation says that it does not.
cudaError_t cudaFree(void* memory) {
  return call([&](Runtime& device) {
    if (const cudaError_t error = device.streams().unsafe()) return error;
    if (!device.is_of_pool(address_of(memory))) device.streams().run_all();
    device.free(address_of(memory));
    return cudaSuccess;
  });
}
/// A capture takes only memory that a graph allocated, and there is none.
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  return call([&](Runtime& device) {
    if (device.streams().is_captured(stream)) return cudaErrorInvalidValue;
    return device.streams().queue(stream, {OperationKind::other, "cudaFreeAsync",
                                           [&device, memory] { device.free(address_of(memory)); }});
  });
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  return call([&](Runtime& device) {
    if (const cudaError_t error = device.streams().unsafe()) return error;
    *memory = device.host_memory().allocate(bytes);
    return cudaSuccess;
  });
}
/// CUDA does not promise that it waits for copies: those that are carried out later are faults.
cudaError_t cudaFreeHost(void* memory) {
  return call([&](Runtime& device) {
    if (const cudaError_t error = device.streams().unsafe()) return error;
    return device.host_memory().free(memory) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return call([&](Runtime& device) { return copy_and_wait(device, {to, from, bytes, kind}); });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call([&](Runtime& device) { return queue_copy(device, {to, from, bytes, kind}, stream); });
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return call([&](Runtime& device) { return queue_fill(device, {to, bytes, bytes, 1}, value, stream); });
}
cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
                              cudaStream_t stream) {
  return call([&](Runtime& device) { return queue_fill(device, {to, pitch, width, height}, value, stream); });
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
