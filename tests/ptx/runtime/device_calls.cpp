// CUDA's entry points about the device and about errors.
#include <cuda_runtime_api.h>

#include <array>
#include <cstdio>
#include <utility>

#include "tests/ptx/runtime/call.hpp"

namespace {

using halfscope::ptx::call;
using halfscope::ptx::last_error;
using halfscope::ptx::Runtime;
using halfscope::ptx::runtime;

constexpr std::array error_strings{
    std::pair{cudaSuccess, "no error"},
    std::pair{cudaErrorInvalidValue, "invalid argument"},
    std::pair{cudaErrorMemoryAllocation, "out of memory"},
    std::pair{cudaErrorInvalidConfiguration, "invalid configuration argument"},
    std::pair{cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"},
    std::pair{cudaErrorInvalidDeviceFunction, "invalid device function"},
    std::pair{cudaErrorInvalidDevice, "invalid device ordinal"},
    std::pair{cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"},
    std::pair{cudaErrorInvalidPtx, "a PTX JIT compilation failed"},
    std::pair{cudaErrorInvalidResourceHandle, "invalid resource handle"},
    std::pair{cudaErrorIllegalState, "the operation cannot be performed in the present state"},
    std::pair{cudaErrorNotReady, "device not ready"},
    std::pair{cudaErrorNotSupported, "operation not supported"},
    std::pair{cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"},
    std::pair{cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"},
    std::pair{cudaErrorStreamCaptureImplicit,
              "operation would make the legacy stream depend on a capturing blocking stream"},
    std::pair{cudaErrorCapturedEvent,
              "operation not permitted on an event last recorded in a capturing stream"},
    std::pair{cudaErrorStreamCaptureWrongThread,
              "attempt to terminate a thread-local capture sequence from another thread"},
    std::pair{cudaErrorGraphExecUpdateFailure,
              "the graph update was not performed because it included changes which violated constraints "
              "specific to instantiated graph update"},
};

}  // namespace

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
  return call([&](Runtime&) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  return call([&](Runtime& device) {
    const auto [major, minor] = device.capability();
    if (attribute == cudaDevAttrComputeCapabilityMajor) return *value = major, cudaSuccess;
    if (attribute == cudaDevAttrComputeCapabilityMinor) return *value = minor, cudaSuccess;
    return cudaErrorInvalidValue;
  });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "PTX interpreter");
  properties->major = runtime().capability().major;
  properties->minor = runtime().capability().minor;
  return cudaSuccess;
}

/// Errors that calls returned; faults of work are thrown.
cudaError_t cudaGetLastError() {
  return std::exchange(last_error(), cudaSuccess);
}
const char* cudaGetErrorString(cudaError_t error) {
  for (const auto& [known, text] : error_strings) {
    if (known == error) return text;
  }
  return "unrecognized error code";
}

}  // extern "C"
