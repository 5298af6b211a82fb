// CUDA's entry points for streams, events and graphs. Streams do their work when it is queued.
#include <cuda_runtime_api.h>

#include "tests/ptx/runtime/runtime.hpp"

namespace {

using halfscope::ptx::Recording;
using halfscope::ptx::runtime;

template <typename Handle>
Handle new_handle() {
  return reinterpret_cast<Handle>(new char);
}
template <typename Handle>
void delete_handle(Handle handle) {
  delete reinterpret_cast<char*>(handle);
}

Recording* recording_of(const void* handle) {
  return static_cast<Recording*>(const_cast<void*>(handle));
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new_handle<cudaStream_t>();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete_handle(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new_handle<cudaEvent_t>();
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete_handle(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1;  // nothing is timed
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  runtime().begin_capture(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  auto recording = runtime().end_capture(stream);
  if (!recording) return cudaErrorIllegalState;
  *graph = reinterpret_cast<cudaGraph_t>(new Recording(std::move(*recording)));
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = reinterpret_cast<cudaGraphExec_t>(new Recording(*recording_of(graph)));
  return cudaSuccess;
}
/// As long a recording is taken for one of the same shape.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo*) {
  if (recording_of(executable)->size() != recording_of(graph)->size()) return cudaErrorGraphExecUpdateFailure;
  *recording_of(executable) = *recording_of(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  for (const auto& operation : *recording_of(executable)) runtime().enqueue(stream, operation);
  return cudaSuccess;
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
