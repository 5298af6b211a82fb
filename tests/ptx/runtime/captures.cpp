// Captures in progress: each holds the operations of its stream, until a forbidden call invalidates it.
#include "tests/ptx/runtime/captures.hpp"

#include <utility>

namespace halfscope::ptx {

template <typename Forbids>
cudaError_t Captures::forbidden_if(cudaError_t error, const Forbids& forbids) {
  cudaError_t status = cudaSuccess;
  for (auto& [stream, capture] : captures_) {
    if (!forbids(stream, capture)) continue;
    capture.valid = false;
    status = error;
  }
  return status;
}

cudaError_t Captures::begin(cudaStream_t stream, StreamKind kind, cudaStreamCaptureMode mode) {
  if (stream == nullptr) return cudaErrorStreamCaptureUnsupported;
  if (has(stream)) return cudaErrorIllegalState;
  captures_[stream] = {kind, mode, std::this_thread::get_id(), true, {}};
  return cudaSuccess;
}

cudaError_t Captures::end(cudaStream_t stream, Recording& recording) {
  const auto found = captures_.find(stream);
  if (found == captures_.end()) return cudaErrorIllegalState;
  const bool elsewhere = found->second.thread != std::this_thread::get_id();
  if (elsewhere && found->second.mode != cudaStreamCaptureModeRelaxed)
    return cudaErrorStreamCaptureWrongThread;
  const Capture capture = std::move(captures_.extract(found).mapped());
  if (!capture.valid) return cudaErrorStreamCaptureInvalidated;
  recording = capture.recording;
  return cudaSuccess;
}

cudaError_t Captures::record(cudaStream_t stream, Operation operation) {
  if (const cudaError_t error = state(stream)) return error;
  captures_.at(stream).recording.push_back(std::move(operation));
  return cudaSuccess;
}

cudaError_t Captures::state(cudaStream_t stream) const {
  return captures_.at(stream).valid ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
}

void Captures::invalidate(cudaStream_t stream) {
  if (has(stream)) captures_.at(stream).valid = false;
}

cudaError_t Captures::unsafe() {
  return forbidden_if(cudaErrorStreamCaptureUnsupported, [](cudaStream_t, const Capture& capture) {
    if (capture.mode == cudaStreamCaptureModeGlobal) return true;
    const bool own = capture.thread == std::this_thread::get_id();
    return own && capture.mode == cudaStreamCaptureModeThreadLocal;
  });
}

cudaError_t Captures::legacy() {
  return forbidden_if(cudaErrorStreamCaptureImplicit, [](cudaStream_t, const Capture& capture) {
    return capture.kind == StreamKind::blocking;
  });
}

cudaError_t Captures::whole_device() {
  return forbidden_if(cudaErrorStreamCaptureUnsupported, [](cudaStream_t, const Capture&) { return true; });
}

cudaError_t Captures::waits_for(cudaStream_t stream) {
  return forbidden_if(cudaErrorStreamCaptureUnsupported,
                      [stream](cudaStream_t captured, const Capture&) { return captured == stream; });
}

}  // namespace halfscope::ptx
