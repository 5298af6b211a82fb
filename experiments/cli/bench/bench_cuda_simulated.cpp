// In a build without CUDA there is nothing to time on a device, and no device either.
#include <halfscope/core/error.hpp>

#include "experiments/cli/bench/bench_cuda.hpp"

namespace halfscope {
namespace {

[[noreturn]] void refuse() {
  throw RequestError("bench: built without CUDA");
}

}  // namespace

BenchResult bench_cuda_pass(DevicePass) {
  refuse();
}

BenchResult bench_cuda_ordered(StoredType, StoredType) {
  refuse();
}

BenchResult bench_cuda_cublas() {
  refuse();
}

}  // namespace halfscope
