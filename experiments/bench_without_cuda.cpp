// In a build without CUDA there is nothing to time on a device.
#include "experiments/bench_cuda.hpp"

namespace halfscope {
namespace {

BenchResult not_built() {
  BenchResult result;
  result.skipped = "built without CUDA";
  return result;
}

}  // namespace

BenchResult bench_cuda_round() {
  return not_built();
}

BenchResult bench_cuda_ordered(StoredType, StoredType) {
  return not_built();
}

BenchResult bench_cuda_cublas() {
  return not_built();
}

}  // namespace halfscope
