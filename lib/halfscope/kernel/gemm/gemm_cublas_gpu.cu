// Matrix product by cuBLAS: column-major, so that it computes the transposed product of transposed factors.
#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <map>
#include <memory>
#include <source_location>
#include <string_view>
#include <utility>

#include <halfscope/kernel/detail/launch.cuh>
#include <halfscope/kernel/gemm/gemm_cublas.hpp>

namespace halfscope {
namespace {

void check(cublasStatus_t status, const char* call,
           const std::source_location& where = std::source_location::current()) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string_view path = where.file_name();
  throw RuntimeFailure("gemm_cublas: " + std::string(call) + " failed: " + cublasGetStatusString(status) +
                       " (" + std::string(path.substr(path.rfind('/') + 1)) + ":" +
                       std::to_string(where.line()) + ")");
}

struct Destroy {
  void operator()(cublasContext* handle) const { cublasDestroy(handle); }
};
using Handle = std::unique_ptr<cublasContext, Destroy>;

Handle make_handle(cudaStream_t stream) {
  cublasHandle_t raw = nullptr;
  check(cublasCreate(&raw), "cublasCreate");
  Handle handle(raw);
  check(cublasSetStream(raw, stream), "cublasSetStream");
  check(cublasSetPointerMode(raw, CUBLAS_POINTER_MODE_HOST), "cublasSetPointerMode");
  check(cublasSetAtomicsMode(raw, CUBLAS_ATOMICS_NOT_ALLOWED), "cublasSetAtomicsMode");
  // No TF32, and no f16 parts of a sum that is to be f32.
  const auto mode =
      static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
  check(cublasSetMathMode(raw, mode), "cublasSetMathMode");
  return handle;
}

/// This thread's handle for its device and `stream`: two streams that shared one would share its workspace.
cublasHandle_t handle_for(cudaStream_t stream) {
  thread_local std::map<std::pair<int, cudaStream_t>, Handle> handles;
  int device = 0;
  cuda::check(cudaGetDevice(&device), "gemm_cublas: cudaGetDevice");
  Handle& handle = handles[{device, stream}];
  if (handle == nullptr) handle = make_handle(stream);
  return handle.get();
}

cudaDataType_t type_of(DType type) {
  if (type == DType::f16) return CUDA_R_16F;
  return type == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

cublasOperation_t operation_of(const DeviceMatrix& matrix) {
  return matrix.layout == MatrixLayout::row_major ? CUBLAS_OP_N : CUBLAS_OP_T;
}

/// alpha and beta in the type that cuBLAS expects beside a type of sums.
struct Factors {
  float wide[2] = {1, 0};
  __half half[2] = {__half(1.0f), __half(0.0f)};
};

}  // namespace

void gemm_cublas(const DeviceProduct& p, CUstream_st* stream) {
  check_device_product(p, "gemm_cublas");
  const cublasHandle_t handle = handle_for(stream);
  if (p.rows == 0 || p.columns == 0) return;
  if (p.depth == 0) {
    const std::size_t element = bytes_per_element(p.output);
    cuda::check(cudaMemset2DAsync(p.c, static_cast<std::size_t>(p.c_stride) * element, 0,
                                  static_cast<std::size_t>(p.columns) * element,
                                  static_cast<std::size_t>(p.rows), stream),
                "gemm_cublas: cudaMemset2DAsync");
    return;
  }
  const bool in_half = p.sum == DType::f16;
  const Factors factors;
  const void* alpha = in_half ? static_cast<const void*>(&factors.half[0]) : &factors.wide[0];
  const void* beta = in_half ? static_cast<const void*>(&factors.half[1]) : &factors.wide[1];
  check(cublasGemmEx_64(handle, operation_of(p.b), operation_of(p.a), p.columns, p.rows, p.depth, alpha,
                        p.b.data, type_of(p.input), p.b.stride, p.a.data, type_of(p.input), p.a.stride, beta,
                        p.c, type_of(p.output), p.c_stride, in_half ? CUBLAS_COMPUTE_16F : CUBLAS_COMPUTE_32F,
                        CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
}

}  // namespace halfscope
