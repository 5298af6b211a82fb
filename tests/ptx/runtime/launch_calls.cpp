// CUDA's entry points that nvcc's host code calls: registration of kernels, and their launches.
#include <cuda_runtime_api.h>

#include <vector>

#include "tests/ptx/runtime/call.hpp"

namespace {

using halfscope::ptx::call;
using halfscope::ptx::LaunchConfiguration;
using halfscope::ptx::Registered;
using halfscope::ptx::Runtime;

/// Configurations of this thread's launches, until the kernels' stubs take them.
std::vector<LaunchConfiguration>& configurations() {
  thread_local std::vector<LaunchConfiguration> pushed;
  return pushed;
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* fat_binary) {
  void** handle = nullptr;
  (void)call([&](Runtime& device) {
    handle = reinterpret_cast<void**>(device.programs().add(fat_binary));
    return cudaSuccess;
  });
  return handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) {
  return 1;
}
void __cudaRegisterFunction(void** handle, const char* host_function, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  (void)call([&](Runtime& device) {
    device.programs().add_kernel(reinterpret_cast<Registered*>(handle), host_function, name);
    return cudaSuccess;
  });
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, CUstream_st* stream) {
  configurations().push_back({grid, block, shared_bytes, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream) {
  const LaunchConfiguration c = configurations().back();
  configurations().pop_back();
  *grid = c.grid;
  *block = c.block;
  *shared_bytes = c.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = c.stream;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes, cudaStream_t stream) {
  return call([&](Runtime& device) {
    return device.launch(kernel, {grid, block, shared_bytes, stream}, arguments);
  });
}
/// A kernel's handle is the address of its host function.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(host_function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared_bytes, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  return call([&](Runtime& device) {
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaErrorInvalidValue;
    return device.programs().set_most_dynamic_bytes(kernel, value);
  });
}

}  // extern "C"
