// Native matrix products in a build without CUDA: an error that says so.
#include <halfscope/core/error.hpp>
#include <halfscope/kernel/gemm/detail/gemm_native.hpp>
#include <halfscope/kernel/gemm/gemm_cublas.hpp>
#include <halfscope/kernel/gemm/gemm_ordered.hpp>

namespace halfscope {
namespace {

[[noreturn]] void refuse(const char* operation) {
  throw InvalidArgument(std::string(operation) +
                        ": this halfscope was built without CUDA; configure with -DHALFSCOPE_CUDA=ON");
}

}  // namespace

std::optional<TensorCore> device_tensor_core() {
  return std::nullopt;
}

void gemm_cublas(const DeviceProduct&, CUstream_st*) {
  refuse("gemm_cublas");
}

void gemm_ordered(const DeviceProduct&, CUstream_st*) {
  refuse("gemm_ordered");
}

}  // namespace halfscope
