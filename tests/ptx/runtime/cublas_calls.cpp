// cuBLAS's entry points: handles, and the one product that the library asks for.
#include <cublas_v2.h>
#include <fmt/format.h>

#include <optional>

#include <halfscope/format/encoding.hpp>
#include <halfscope/format/formats.hpp>

#include "tests/ptx/runtime/call.hpp"
#include "tests/ptx/runtime/product.hpp"

namespace {

using halfscope::DeviceMatrix;
using halfscope::DeviceProduct;
using halfscope::DType;
using halfscope::MatrixLayout;
using halfscope::ptx::call;
using halfscope::ptx::OperationKind;
using halfscope::ptx::Runtime;

/// Whether a factor of the product, in the type of its sums, is `value`.
bool is_factor(const void* factor, cublasComputeType_t sums, float value) {
  if (sums == CUBLAS_COMPUTE_32F) return *static_cast<const float*>(factor) == value;
  const auto code = *static_cast<const std::uint16_t*>(factor);
  return sums == CUBLAS_COMPUTE_16F && halfscope::decode(code, halfscope::fp16) == value;
}

std::optional<DType> type_of(cudaDataType type) {
  if (type == CUDA_R_16F) return DType::f16;
  if (type == CUDA_R_16BF) return DType::bf16;
  return type == CUDA_R_32F ? std::optional(DType::f32) : std::nullopt;
}

/// A column-major matrix is the transposed row-major one.
MatrixLayout layout_of(cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? MatrixLayout::row_major : MatrixLayout::transposed;
}

/// The stream that a handle queues on.
cudaStream_t& stream_of(cublasHandle_t handle) {
  return *reinterpret_cast<cudaStream_t*>(handle);
}

cublasStatus_t check(const Runtime& device, const DeviceProduct& product) {
  try {
    halfscope::check_device_product(product, "cublasGemmEx");
  } catch (const halfscope::InvalidArgument&) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool is_known = product.input != DType::bf16 || device.capability().major >= 8;
  return is_known ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ARCH_MISMATCH;
}

cublasStatus_t queue(Runtime& device, cudaStream_t stream, const DeviceProduct& product) {
  if (const cublasStatus_t status = check(device, product)) return status;
  const auto run = [&device, product] {
    halfscope::ptx::multiply(device.memory(), product, device.capability());
  };
  const cudaError_t error =
      device.streams().queue(stream, {OperationKind::kernel, "cuBLAS's " + to_string(product), run});
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace

extern "C" {

/// It allocates, which captures forbid.
cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  const cudaError_t error = call([](Runtime& device) { return device.streams().unsafe(); });
  if (error != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = reinterpret_cast<cublasHandle_t>(new cudaStream_t{});
  return CUBLAS_STATUS_SUCCESS;
}
/// Waits for the device, as its documentation says.
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete &stream_of(handle);
  (void)cudaDeviceSynchronize();
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
const char* cublasGetStatusString(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return "the requested functionality is not supported";
  if (status == CUBLAS_STATUS_INVALID_VALUE) return "an unsupported value or parameter was passed";
  if (status == CUBLAS_STATUS_ARCH_MISMATCH) return "the device has no such feature";
  if (status == CUBLAS_STATUS_NOT_INITIALIZED) return "the library was not initialized";
  if (status == CUBLAS_STATUS_EXECUTION_FAILED) return "the stream did not take the product";
  return "unrecognized status";
}

/// Only with an alpha of one and a beta of zero, as the library calls it.
cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t operation_a,
                               cublasOperation_t operation_b, int64_t rows, int64_t columns, int64_t depth,
                               const void* alpha, const void* a, cudaDataType type_a, int64_t stride_a,
                               const void* b, cudaDataType type_b, int64_t stride_b, const void* beta,
                               void* c, cudaDataType type_c, int64_t stride_c, cublasComputeType_t sums,
                               cublasGemmAlgo_t) {
  const auto input = type_of(type_a), output = type_of(type_c);
  if (!is_factor(alpha, sums, 1) || !is_factor(beta, sums, 0) || type_a != type_b || !input || !output)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  // Transposed, it is a product of row-major matrices.
  const DeviceProduct product{.rows = columns,
                              .depth = depth,
                              .columns = rows,
                              .input = *input,
                              .sum = sums == CUBLAS_COMPUTE_32F ? DType::f32 : DType::f16,
                              .output = *output,
                              .a = {b, stride_b, layout_of(operation_b)},
                              .b = {a, stride_a, layout_of(operation_a)},
                              .c = c,
                              .c_stride = stride_c};
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  (void)call([&](Runtime& device) {
    status = queue(device, stream_of(handle), product);
    return cudaSuccess;
  });
  return status;
}

}  // extern "C"
