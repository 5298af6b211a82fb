// In a build without CUDA there is nothing to time on a device, and no device either.
#include <halfscope/core/error.hpp>

#include "experiments/cli/bench/bench_cuda.hpp"

namespace halfscope {
namespace {

[[noreturn]] void refuse() {
  throw InvalidArgument("bench: built without CUDA");
}

}  // namespace

BenchResult bench_cuda_pass(DevicePass) {
  refuse();
}

BenchResult bench_cuda_ordered(DType, DType) {
  refuse();
}

BenchResult bench_cuda_cublas() {
  refuse();
}

}  // namespace halfscope
