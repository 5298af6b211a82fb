// Device memory around a kernel under test.
#include <memory>

#include <halfscope/kernel/launch.cuh>

#include "tests/kernel/run_on_device.hpp"

namespace halfscope {
namespace {

struct Free {
  void operator()(float* memory) const { cudaFree(memory); }
};

std::unique_ptr<float, Free> allocate(std::size_t bytes) {
  float* memory = nullptr;
  cuda::check(cudaMalloc(&memory, bytes), "cudaMalloc");
  return std::unique_ptr<float, Free>(memory);
}

}  // namespace

bool has_device() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

std::vector<float> run_on_device(const std::vector<float>& in,
                                 const std::function<void(const float*, float*)>& launch) {
  const std::size_t bytes = in.size() * sizeof(float);
  const auto from = allocate(bytes);
  const auto to = allocate(bytes);
  std::vector<float> out(in.size());
  cuda::check(cudaMemcpy(from.get(), in.data(), bytes, cudaMemcpyHostToDevice), "copy to the device");
  launch(from.get(), to.get());
  cuda::check(cudaDeviceSynchronize(), "kernel");
  cuda::check(cudaMemcpy(out.data(), to.get(), bytes, cudaMemcpyDeviceToHost), "copy from the device");
  return out;
}

}  // namespace halfscope
