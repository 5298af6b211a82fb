// CUDA's entry points about the device, and cuBLAS's, which say that they are not supported.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cstdio>

#include "tests/ptx/runtime/runtime.hpp"

using halfscope::ptx::runtime;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const auto [major, minor] = runtime().capability();
  if (attribute == cudaDevAttrComputeCapabilityMajor) return *value = major, cudaSuccess;
  if (attribute == cudaDevAttrComputeCapabilityMinor) return *value = minor, cudaSuccess;
  return cudaErrorInvalidValue;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "PTX interpreter");
  properties->major = runtime().capability().major;
  properties->minor = runtime().capability().minor;
  return cudaSuccess;
}

/// Faults are thrown: a call that returns has succeeded, or its own status says otherwise.
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "an error of the PTX interpreter";
}

cublasStatus_t cublasCreate_v2(cublasHandle_t*) {
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t) {
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t) {
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t, cublasPointerMode_t) {
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t) {
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) {
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
const char* cublasGetStatusString(cublasStatus_t) {
  return "the PTX interpreter has no cuBLAS";
}
cublasStatus_t cublasGemmEx_64(cublasHandle_t, cublasOperation_t, cublasOperation_t, int64_t, int64_t,
                               int64_t, const void*, const void*, cudaDataType, int64_t, const void*,
                               cudaDataType, int64_t, const void*, void*, cudaDataType, int64_t,
                               cublasComputeType_t, cublasGemmAlgo_t) {
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // extern "C"
