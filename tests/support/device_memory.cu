// Device memory for tests of kernels that take raw pointers.
#include <halfscope/kernel/detail/launch.cuh>

#include "tests/support/device_memory.hpp"

namespace halfscope {

DeviceMemory::DeviceMemory(std::span<const std::byte> bytes) : size_(bytes.size()) {
  void* memory = nullptr;
  cuda::check(cudaMalloc(&memory, size_ + 1), "cudaMalloc");  // never of no bytes
  memory_ = std::shared_ptr<void>(memory, [](void* held) { cudaFree(held); });
  cuda::check(cudaMemcpy(memory, bytes.data(), size_, cudaMemcpyHostToDevice), "copy to the device");
}

void DeviceMemory::read(std::span<std::byte> to) const {
  cuda::check(cudaDeviceSynchronize(), "kernel");
  cuda::check(cudaMemcpy(to.data(), memory_.get(), size_, cudaMemcpyDeviceToHost), "copy from the device");
}

ComputeCapability device_capability() {
  const int capability = cuda::compute_capability();
  return {capability / 10, capability % 10};
}

}  // namespace halfscope
