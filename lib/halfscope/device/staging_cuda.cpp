// Fills pinned memory, and waits before it is filled again.
#include <halfscope/device/detail/staging.cuh>

#include <cstring>
#include <utility>

#include <halfscope/device/step_graph.hpp>

namespace halfscope::cuda {
namespace {

constexpr std::size_t alignment = 256;

thread_local constinit Staging* in_use = nullptr;

}  // namespace

Staging::Staging() {
  check(cudaMallocHost(&memory_, 2 * half), "cudaMallocHost");
  in_use = this;
}

Staging::~Staging() {
  in_use = nullptr;
  // Copies from it may be under way; cudaFreeHost need not wait.
  (void)cudaStreamSynchronize(stream());
  for (const std::vector<Event>& events : copied_) {
    for (const Event& event : events) (void)cudaEventSynchronize(event.get());
  }
  (void)cudaFreeHost(memory_);
}

void Staging::copy(void* to, const void* from, std::size_t bytes) {
  if (used_ + bytes > half) change_halves();
  void* const staged = static_cast<std::byte*>(memory_) + current_ * half + used_;
  std::memcpy(staged, from, bytes);
  check(cudaMemcpyAsync(to, staged, bytes, cudaMemcpyHostToDevice, stream()), "copy");
  unmarked_ = true;
  used_ += (bytes + alignment - 1) / alignment * alignment;
}

void Staging::make_room() {
  if (used_ > half / 8) change_halves();
}

void Staging::leave_stream() {
  if (!unmarked_) return;
  cudaEvent_t created = nullptr;  // a new one: an event belongs to one GPU, the next stream may be of another
  check(cudaEventCreateWithFlags(&created, cudaEventDisableTiming), "cudaEventCreate");
  Event event(created);
  check(cudaEventRecord(event.get(), stream()), "cudaEventRecord");
  copied_[current_].push_back(std::move(event));
  unmarked_ = false;
}

/// Begins the other half, once the copies from it have been made.
void Staging::change_halves() {
  cut_recording();
  leave_stream();
  current_ = 1 - current_;
  used_ = 0;
  for (const Event& event : copied_[current_]) check(cudaEventSynchronize(event.get()), "copy");
  copied_[current_].clear();
}

Staging& staging() {
  (void)stream();  // made before it, and so destroyed after it
  thread_local Staging own;
  return own;
}

void leave_stream() {
  if (in_use != nullptr) in_use->leave_stream();
}

}  // namespace halfscope::cuda
