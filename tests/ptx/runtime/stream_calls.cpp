// CUDA's entry points for streams, events and graphs.
#include <cuda_runtime_api.h>

#include <utility>

#include "tests/ptx/runtime/call.hpp"
#include "tests/ptx/runtime/graphs.hpp"

namespace {

using halfscope::ptx::call;
using halfscope::ptx::compare;
using halfscope::ptx::Recording;
using halfscope::ptx::Runtime;
using halfscope::ptx::StreamKind;

Recording* recording_of(const void* handle) {
  return static_cast<Recording*>(const_cast<void*>(handle));
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return call([&](Runtime& device) {
    if (flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
    const bool blocks = flags == cudaStreamDefault;
    *stream = device.streams().create(blocks ? StreamKind::blocking : StreamKind::nonblocking);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call([&](Runtime& device) { return device.streams().destroy(stream); });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call([&](Runtime& device) { return device.streams().synchronize(stream); });
}
cudaError_t cudaDeviceSynchronize() {
  return call([](Runtime& device) { return device.streams().synchronize_device(); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call([&](Runtime& device) {
    *event = device.streams().create_event(flags);
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call([&](Runtime& device) { return device.streams().destroy_event(event); });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call([&](Runtime& device) { return device.streams().record_event(event, stream); });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call([&](Runtime& device) { return device.streams().synchronize_event(event); });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call([&](Runtime& device) { return device.streams().elapsed(*milliseconds, start, end); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call([&](Runtime& device) { return device.streams().begin_capture(stream, mode); });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call([&](Runtime& device) {
    *graph = nullptr;
    Recording recording;
    if (const cudaError_t error = device.streams().end_capture(stream, recording)) return error;
    *graph = reinterpret_cast<cudaGraph_t>(new Recording(std::move(recording)));
    return cudaSuccess;
  });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = reinterpret_cast<cudaGraphExec_t>(new Recording(*recording_of(graph)));
  return cudaSuccess;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info) {
  return call([&](Runtime&) {
    info->result = compare(*recording_of(executable), *recording_of(graph));
    if (info->result != cudaGraphExecUpdateSuccess) return cudaErrorGraphExecUpdateFailure;
    *recording_of(executable) = *recording_of(graph);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return call([&](Runtime& device) {
    for (const auto& operation : *recording_of(executable)) {
      if (const cudaError_t error = device.streams().queue(stream, operation)) return error;
    }
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete recording_of(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete recording_of(executable);
  return cudaSuccess;
}

}  // extern "C"
