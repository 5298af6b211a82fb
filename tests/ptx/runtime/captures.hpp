// Captures in progress, and the calls that they forbid: CUDA C++ Programming Guide, "Prohibited and Unhandled
// Operations" of stream capture, and cudaThreadExchangeStreamCaptureMode.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <thread>

#include "tests/ptx/runtime/operation.hpp"
#include "tests/ptx/runtime/queues.hpp"

namespace halfscope::ptx {

/// A forbidden call gets its error and invalidates the captures that forbid it. Threads have the mode that
/// they begin with, global: nothing here changes it.
class Captures {
 public:
  [[nodiscard]] bool has(cudaStream_t stream) const { return captures_.contains(stream); }

  cudaError_t begin(cudaStream_t stream, StreamKind kind, cudaStreamCaptureMode mode);
  /// The recorded operations are moved to `recording`.
  cudaError_t end(cudaStream_t stream, Recording& recording);
  cudaError_t record(cudaStream_t stream, Operation operation);
  /// An error where the stream's capture is no longer valid.
  [[nodiscard]] cudaError_t state(cudaStream_t stream) const;
  void invalidate(cudaStream_t stream);

  /// A call that no capture observes: it allocates, frees or waits.
  cudaError_t unsafe();
  /// Work on the legacy stream, or a wait for it: captured streams that it would join forbid it.
  cudaError_t legacy();
  /// A wait for the whole device, or the like.
  cudaError_t whole_device();
  /// A wait for `stream`, or its end.
  cudaError_t waits_for(cudaStream_t stream);

 private:
  struct Capture {
    StreamKind kind = StreamKind::blocking;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    std::thread::id thread;
    bool valid = true;
    Recording recording;
  };
  template <typename Forbids>
  cudaError_t forbidden_if(cudaError_t error, const Forbids& forbids);

  std::map<cudaStream_t, Capture> captures_;
};

}  // namespace halfscope::ptx
