// Queues of streams: an operation is preceded by those that its stream, or the legacy one, puts before it.
#include "tests/ptx/runtime/queues.hpp"

#include <fmt/format.h>

#include <exception>
#include <ranges>
#include <utility>

#include "tests/ptx/fault.hpp"

namespace halfscope::ptx {

void Queues::remove(cudaStream_t stream) {
  streams_.at(stream).removed = true;
}

bool Queues::has(cudaStream_t stream) const {
  const auto found = streams_.find(stream);
  return found != streams_.end() && !found->second.removed;
}

std::uint64_t Queues::push(cudaStream_t stream, Operation operation) {
  streams_.at(stream).queue.push_back({++pushed_, std::move(operation)});
  return pushed_;
}

bool Queues::is_done(cudaStream_t stream, std::uint64_t number) const {
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second.queue.empty()) return true;
  return found->second.queue.front().number > number;
}

void Queues::run_through(cudaStream_t stream, std::uint64_t number) {
  if (!streams_.contains(stream)) return;  // removed, and all done
  if (stream == nullptr) run_required(nullptr, number + 1);
  run_queue(stream, number);
}

void Queues::run_queue(cudaStream_t stream, std::uint64_t number) {
  Stream& own = streams_.at(stream);
  while (!own.queue.empty() && own.queue.front().number <= number) {
    run_required(stream, own.queue.front().number);
    run_first(own);
  }
}

/// Carries out the operations that the legacy stream orders before operation `number` of `stream`. It and
/// run_queue call each other with ever smaller numbers, and so come to an end.
void Queues::run_required(cudaStream_t stream, std::uint64_t number) {
  if (streams_.at(stream).kind == StreamKind::nonblocking) return;
  if (stream != nullptr) return run_queue(nullptr, number - 1);
  for (const auto& [handle, other] : std::views::reverse(streams_)) {
    if (handle != nullptr && other.kind == StreamKind::blocking) run_queue(handle, number - 1);
  }
}

void Queues::run_first(Stream& stream) {
  const Operation operation = std::move(stream.queue.front().operation);
  stream.queue.pop_front();
  try {
    operation.run();
  } catch (const Fault&) {
    drop_all();
    throw;
  } catch (const std::exception& error) {
    drop_all();
    throw Fault(fmt::format("{}: {}", operation.name, error.what()));
  }
}

void Queues::run_all() {
  for (const auto& entry : std::views::reverse(streams_)) run_queue(entry.first, pushed_);
  std::erase_if(streams_, [](const auto& entry) { return entry.second.removed; });
}

void Queues::drop_all() {
  for (auto& entry : streams_) entry.second.queue.clear();
}

}  // namespace halfscope::ptx
