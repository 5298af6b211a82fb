// Queues of streams, whose operations are carried out as late as CUDA allows.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <map>

#include "tests/ptx/runtime/operation.hpp"

namespace halfscope::ptx {

/// Whether the legacy default stream and this one wait for each other's work.
enum class StreamKind : std::uint8_t { blocking, nonblocking };

/// Operations have one numbering in the order in which they are queued. One is carried out only when a call
/// forces it: after those before it in its stream, and after what the legacy default stream, handle 0, orders
/// before it. Streams that nothing orders run in the reverse order of their making. An operation's exception
/// comes out of the call that forces it, as a Fault with the operation's name; all else that is queued is
/// then dropped.
class Queues {
 public:
  void add(cudaStream_t stream, StreamKind kind) { streams_[stream].kind = kind; }
  /// Its queued operations are still carried out.
  void remove(cudaStream_t stream);
  [[nodiscard]] bool has(cudaStream_t stream) const;
  [[nodiscard]] StreamKind kind(cudaStream_t stream) const { return streams_.at(stream).kind; }

  /// Returns the operation's number.
  std::uint64_t push(cudaStream_t stream, Operation operation);
  [[nodiscard]] bool is_done(cudaStream_t stream, std::uint64_t number) const;

  /// Carries out the stream's operations up to `number`; of the legacy one, all that it waits for.
  void run_through(cudaStream_t stream, std::uint64_t number);
  void run_stream(cudaStream_t stream) { run_through(stream, pushed_); }
  void run_all();

 private:
  struct Numbered {
    std::uint64_t number = 0;
    Operation operation;
  };
  struct Stream {
    StreamKind kind = StreamKind::blocking;
    bool removed = false;
    std::deque<Numbered> queue;
  };

  void run_queue(cudaStream_t stream, std::uint64_t number);
  void run_required(cudaStream_t stream, std::uint64_t number);
  void run_first(Stream& stream);
  void drop_all();

  std::map<cudaStream_t, Stream> streams_{{nullptr, {}}};
  std::uint64_t pushed_ = 0;
};

}  // namespace halfscope::ptx
