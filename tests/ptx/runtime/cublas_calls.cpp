// cuBLAS's entry points: one product, added up in double precision. The order of a GPU's cuBLAS is not
// specified.
#include <cublas_v2.h>

#include <numeric>
#include <vector>

#include <halfscope/format/encoding.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/format/round.hpp>

#include "tests/ptx/runtime/runtime.hpp"

namespace {

using halfscope::FloatFormat;
using halfscope::ptx::runtime;

FloatFormat format_of(cudaDataType type) {
  if (type == CUDA_R_16F) return halfscope::fp16;
  return type == CUDA_R_16BF ? halfscope::bf16 : halfscope::fp32;
}
std::size_t bytes_of(cudaDataType type) {
  return type == CUDA_R_32F ? 4 : 2;
}

/// A matrix in the device's memory, its columns `stride` elements apart.
struct Matrix {
  const void* data;
  cudaDataType type;
  std::int64_t stride;
  cublasOperation_t operation = CUBLAS_OP_N;

  /// Where element (row, column) of the matrix lies, after its operation.
  [[nodiscard]] std::uintptr_t place(std::int64_t row, std::int64_t column) const {
    const std::int64_t at = operation == CUBLAS_OP_N ? row + column * stride : column + row * stride;
    return reinterpret_cast<std::uintptr_t>(data) + static_cast<std::uintptr_t>(at) * bytes_of(type);
  }
  [[nodiscard]] double element(std::int64_t row, std::int64_t column) const {
    std::uint32_t code = 0;
    runtime().copy(&code, reinterpret_cast<const void*>(place(row, column)), bytes_of(type));
    return double{halfscope::decode(code, format_of(type))};
  }
  void set(std::int64_t row, std::int64_t column, float sum) const {
    const FloatFormat format = format_of(type);
    const std::uint32_t code = halfscope::encode(halfscope::round(sum, {.format = format}), format);
    runtime().copy(reinterpret_cast<void*>(place(row, column)), &code, bytes_of(type));
  }
};

struct Product {
  Matrix a, b, c;
  std::int64_t rows, columns, depth;
};

void multiply(const Product& p) {
  std::vector<double> a, b;  // (row, k), (column, k)
  for (std::int64_t row = 0; row < p.rows; ++row) {
    for (std::int64_t k = 0; k < p.depth; ++k) a.push_back(p.a.element(row, k));
  }
  for (std::int64_t column = 0; column < p.columns; ++column) {
    for (std::int64_t k = 0; k < p.depth; ++k) b.push_back(p.b.element(k, column));
  }
  for (std::int64_t row = 0; row < p.rows; ++row) {
    for (std::int64_t column = 0; column < p.columns; ++column) {
      const double sum = std::inner_product(a.begin() + row * p.depth, a.begin() + (row + 1) * p.depth,
                                            b.begin() + column * p.depth, 0.0);
      p.c.set(row, column, static_cast<float>(sum));
    }
  }
}

/// Whether a factor of the product, in the type of its sums, is `value`.
bool is_factor(const void* factor, cublasComputeType_t sums, float value) {
  if (sums == CUBLAS_COMPUTE_32F) return *static_cast<const float*>(factor) == value;
  const auto code = *static_cast<const std::uint16_t*>(factor);
  return sums == CUBLAS_COMPUTE_16F && halfscope::decode(code, halfscope::fp16) == value;
}

/// Of a handle: the stream that it queues on.
cudaStream_t& stream_of(cublasHandle_t handle) {
  return *reinterpret_cast<cudaStream_t*>(handle);
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = reinterpret_cast<cublasHandle_t>(new cudaStream_t{});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete &stream_of(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  stream_of(handle) = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t, cublasPointerMode_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) {
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t) {
  return "an error of the PTX interpreter";
}

/// Only with an alpha of one and a beta of zero, as the library calls it.
cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t operation_a,
                               cublasOperation_t operation_b, int64_t rows, int64_t columns, int64_t depth,
                               const void* alpha, const void* a, cudaDataType type_a, int64_t stride_a,
                               const void* b, cudaDataType type_b, int64_t stride_b, const void* beta,
                               void* c, cudaDataType type_c, int64_t stride_c, cublasComputeType_t sums,
                               cublasGemmAlgo_t) {
  if (!is_factor(alpha, sums, 1) || !is_factor(beta, sums, 0)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const Product product{{a, type_a, stride_a, operation_a},
                        {b, type_b, stride_b, operation_b},
                        {c, type_c, stride_c},
                        rows,
                        columns,
                        depth};
  runtime().enqueue(stream_of(handle), [product] { multiply(product); });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
