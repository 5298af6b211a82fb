// CUDA's entry points that nvcc's host code calls: registration of kernels, and their launches.
#include <cuda_runtime_api.h>

#include <fmt/format.h>

#include <vector>

#include "tests/ptx/runtime/runtime.hpp"

namespace {

using halfscope::ptx::LaunchShape;
using halfscope::ptx::Registered;
using halfscope::ptx::runtime;

/// Arguments between the triple angle brackets, until the kernel's stub takes it.
struct Configuration {
  dim3 grid, block;
  std::size_t shared_bytes;
  cudaStream_t stream;
};
std::vector<Configuration>& configurations() {
  thread_local std::vector<Configuration> pushed;
  return pushed;
}

void launch(const void* kernel, const Configuration& c, void** arguments) {
  if (c.grid.y * c.grid.z * c.block.y * c.block.z != 1) {
    throw halfscope::InvalidArgument("launch: the interpreter knows one dimension of blocks and threads");
  }
  runtime().launch(kernel, {c.grid.x, c.block.x, c.shared_bytes}, arguments, c.stream);
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* fat_binary) {
  return reinterpret_cast<void**>(runtime().add(fat_binary));
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) {
  return 1;
}
void __cudaRegisterFunction(void** handle, const char* host_function, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  runtime().add_kernel(reinterpret_cast<Registered*>(handle), host_function, name);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, CUstream_st* stream) {
  configurations().push_back({grid, block, shared_bytes, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream) {
  const Configuration c = configurations().back();
  configurations().pop_back();
  *grid = c.grid;
  *block = c.block;
  *shared_bytes = c.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = c.stream;
  return cudaSuccess;
}

/// A kernel's handle is the address of its host function.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(host_function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared_bytes, cudaStream_t stream) {
  launch(kernel, {grid, block, shared_bytes, stream}, arguments);
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes, cudaStream_t stream) {
  launch(kernel, {grid, block, shared_bytes, stream}, arguments);
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return cudaSuccess;
}

}  // extern "C"
