// Streams and events of the device: each call first asks the captures, then queues or runs.
#include "tests/ptx/runtime/streams.hpp"

#include <utility>

namespace halfscope::ptx {
namespace {

/// One that no other object had, and that no pointer of the program equals.
template <typename Handle>
Handle new_handle() {
  static std::uintptr_t last = 0x1000;
  return reinterpret_cast<Handle>(last += 0x10);
}

/// The legacy default stream has two handles.
cudaStream_t plain(cudaStream_t stream) {
  return stream == cudaStreamLegacy ? nullptr : stream;
}

}  // namespace

cudaStream_t Streams::create(StreamKind kind) {
  const auto stream = new_handle<cudaStream_t>();
  queues_.add(stream, kind);
  return stream;
}

cudaError_t Streams::destroy(cudaStream_t stream) {
  if (stream == nullptr || !queues_.has(stream)) return cudaErrorInvalidResourceHandle;
  if (const cudaError_t error = captures_.waits_for(stream)) return error;
  queues_.remove(stream);
  return cudaSuccess;
}

cudaError_t Streams::queue(cudaStream_t stream, Operation operation) {
  stream = plain(stream);
  if (!queues_.has(stream)) return cudaErrorInvalidResourceHandle;
  if (is_captured(stream)) return captures_.record(stream, std::move(operation));
  if (stream == nullptr) {
    if (const cudaError_t error = captures_.legacy()) return error;
  }
  queues_.push(stream, std::move(operation));
  if (order_ == StreamOrder::now) queues_.run_stream(stream);
  return cudaSuccess;
}

cudaError_t Streams::synchronize(cudaStream_t stream) {
  stream = plain(stream);
  if (!queues_.has(stream)) return cudaErrorInvalidResourceHandle;
  if (stream == nullptr) {
    if (const cudaError_t error = captures_.legacy()) return error;
  }
  if (const cudaError_t error = captures_.waits_for(stream)) return error;
  if (const cudaError_t error = captures_.unsafe()) return error;
  queues_.run_stream(stream);
  return cudaSuccess;
}

cudaError_t Streams::synchronize_device() {
  if (const cudaError_t error = captures_.whole_device()) return error;
  queues_.run_all();
  return cudaSuccess;
}

cudaError_t Streams::unsafe_legacy() {
  if (const cudaError_t error = captures_.legacy()) return error;
  return captures_.unsafe();
}

cudaError_t Streams::begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  stream = plain(stream);
  if (!queues_.has(stream)) return cudaErrorInvalidResourceHandle;
  return captures_.begin(stream, queues_.kind(stream), mode);
}

cudaError_t Streams::end_capture(cudaStream_t stream, Recording& recording) {
  return captures_.end(stream, recording);
}

cudaEvent_t Streams::create_event(unsigned flags) {
  const auto event = new_handle<cudaEvent_t>();
  events_[event].is_timed = (flags & cudaEventDisableTiming) == 0;
  return event;
}

cudaError_t Streams::destroy_event(cudaEvent_t event) {
  return events_.erase(event) == 1 ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t Streams::record_event(cudaEvent_t event, cudaStream_t stream) {
  stream = plain(stream);
  const auto found = events_.find(event);
  if (found == events_.end() || !queues_.has(stream)) return cudaErrorInvalidResourceHandle;
  if (stream == nullptr) {
    if (const cudaError_t error = captures_.legacy()) return error;
  }
  Event& own = found->second;
  own.stream = stream;
  own.is_captured = is_captured(stream);
  if (own.is_captured) return captures_.state(stream);
  own.number = queues_.push(stream, {OperationKind::other, "cudaEventRecord", [] {}});
  return cudaSuccess;
}

cudaError_t Streams::check_captured(const Event& event) {
  if (!event.is_captured) return cudaSuccess;
  captures_.invalidate(event.stream);
  return cudaErrorCapturedEvent;
}

cudaError_t Streams::synchronize_event(cudaEvent_t event) {
  const auto found = events_.find(event);
  if (found == events_.end()) return cudaErrorInvalidResourceHandle;
  if (const cudaError_t error = check_captured(found->second)) return error;
  if (const cudaError_t error = captures_.unsafe()) return error;
  if (found->second.number != 0) queues_.run_through(found->second.stream, found->second.number);
  return cudaSuccess;
}

cudaError_t Streams::check_elapsed(cudaEvent_t event) {
  const auto found = events_.find(event);
  if (found == events_.end()) return cudaErrorInvalidResourceHandle;
  const Event& own = found->second;
  if (const cudaError_t error = check_captured(own)) return error;
  if (!own.is_timed || own.number == 0) return cudaErrorInvalidResourceHandle;
  return queues_.is_done(own.stream, own.number) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t Streams::elapsed(float& milliseconds, cudaEvent_t start, cudaEvent_t end) {
  for (cudaEvent_t event : {start, end}) {
    if (const cudaError_t error = check_elapsed(event)) return error;
  }
  milliseconds = 1;
  return cudaSuccess;
}

}  // namespace halfscope::ptx
