// Runs CUDA's functions of FP16 on all 65,536 codes.
#include <cuda_fp16.h>

#include <halfscope/kernel/detail/launch.cuh>

#include "tests/captures/capture_device.hpp"
#include "tests/support/device_memory.hpp"

namespace halfscope {
namespace {

/// The places of capture_functions.
__device__ __half function_of(int index, __half x) {
  switch (index) {
    case 0:
      return hsqrt(x);
    case 1:
      return hrcp(x);
    case 2:
      return hrsqrt(x);
    case 3:
      return hexp(x);
    case 4:
      return hexp2(x);
    case 5:
      return hexp10(x);
    case 6:
      return hlog(x);
    case 7:
      return hlog2(x);
    case 8:
      return hlog10(x);
    case 9:
      return hsin(x);
    case 10:
      return hcos(x);
    default:
      return htanh(x);
  }
}

__global__ void function_kernel(int index, std::uint32_t* results) {
  const unsigned code = blockIdx.x * blockDim.x + threadIdx.x;
  results[code] = __half_as_ushort(function_of(index, __ushort_as_half(static_cast<unsigned short>(code))));
}

}  // namespace

std::vector<std::uint32_t> run_function(std::string_view name) {
  const auto& functions = capture_functions();
  int index = 0;
  while (index < static_cast<int>(functions.size()) &&
         functions[static_cast<std::size_t>(index)].name != name)
    ++index;
  if (index == static_cast<int>(functions.size()))
    throw InvalidArgument("capture: no function " + std::string(name));
  const DeviceMemory results(std::vector<std::uint32_t>(65536));
  function_kernel<<<256, 256>>>(index, static_cast<std::uint32_t*>(results.data()));
  cuda::check(cudaGetLastError(), "capture: function of FP16");
  return results.read<std::uint32_t>();
}

}  // namespace halfscope
