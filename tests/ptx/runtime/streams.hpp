// Streams and events of the device: operations are queued or captured, and carried out by waits.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include <halfscope/core/names.hpp>

#include "tests/ptx/runtime/captures.hpp"
#include "tests/ptx/runtime/operation.hpp"
#include "tests/ptx/runtime/queues.hpp"

namespace halfscope::ptx {

/// When queued work is carried out: as late as CUDA allows, or at once, which finds the use of memory by one
/// stream after another has freed it.
enum class StreamOrder : std::uint8_t { late, now };

/// Functions return what the call of CUDA's runtime of their name returns. Handles are used once: one that
/// was destroyed, or belongs to no stream, is cudaErrorInvalidResourceHandle.
class Streams {
 public:
  explicit Streams(StreamOrder order) : order_(order) {}
  /// Sets the order of work that is queued from now on; returns the order until now.
  StreamOrder exchange_order(StreamOrder order) { return std::exchange(order_, order); }

  [[nodiscard]] cudaStream_t create(StreamKind kind);
  cudaError_t destroy(cudaStream_t stream);
  /// Queues the operation, or records it where the stream is captured.
  cudaError_t queue(cudaStream_t stream, Operation operation);
  cudaError_t synchronize(cudaStream_t stream);
  cudaError_t synchronize_device();
  [[nodiscard]] bool is_captured(cudaStream_t stream) const { return captures_.has(stream); }
  /// Whether a capture forbids a call that allocates, frees or waits.
  cudaError_t unsafe() { return captures_.unsafe(); }
  /// As unsafe, for work on the legacy stream that is waited for, as a copy is.
  cudaError_t unsafe_legacy();
  /// Carries out all that is queued, whatever is captured.
  void run_all() { queues_.run_all(); }

  cudaError_t begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode);
  cudaError_t end_capture(cudaStream_t stream, Recording& recording);

  [[nodiscard]] cudaEvent_t create_event(unsigned flags);
  cudaError_t destroy_event(cudaEvent_t event);
  cudaError_t record_event(cudaEvent_t event, cudaStream_t stream);
  cudaError_t synchronize_event(cudaEvent_t event);
  /// Nothing is timed: it is one millisecond.
  cudaError_t elapsed(float& milliseconds, cudaEvent_t start, cudaEvent_t end);

 private:
  struct Event {
    bool is_timed = true;
    bool is_captured = false;
    cudaStream_t stream = nullptr;
    std::uint64_t number = 0;  ///< number of its operation; 0: never recorded
  };
  [[nodiscard]] cudaError_t check_elapsed(cudaEvent_t event);
  [[nodiscard]] cudaError_t check_captured(const Event& event);

  StreamOrder order_;
  Queues queues_;
  Captures captures_;
  std::map<cudaEvent_t, Event> events_;
};

}  // namespace halfscope::ptx

namespace halfscope {
template <>
inline constexpr std::array<std::string_view, 2> enum_names<ptx::StreamOrder>{"late", "now"};
}  // namespace halfscope
