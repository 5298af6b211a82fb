// CUDA's entry points about the device.
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

}  // extern "C"
