// Fills pinned memory, and waits before it is filled again.
#include <halfscope/device/detail/staging.cuh>

#include <cstring>

#include <halfscope/device/step_graph.hpp>

namespace halfscope::cuda {
namespace {

constexpr std::size_t alignment = 256;

}  // namespace

Staging::Staging() {
  check(cudaMallocHost(&memory_, 2 * half), "cudaMallocHost");
  for (cudaEvent_t& event : left_)
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
}

Staging::~Staging() {
  (void)cudaStreamSynchronize(stream());  // copies from it may be under way; cudaFreeHost need not wait
  for (cudaEvent_t event : left_) (void)cudaEventDestroy(event);
  (void)cudaFreeHost(memory_);
}

void Staging::copy(void* to, const void* from, std::size_t bytes) {
  if (used_ + bytes > half) change_halves();
  void* const staged = static_cast<std::byte*>(memory_) + current_ * half + used_;
  std::memcpy(staged, from, bytes);
  check(cudaMemcpyAsync(to, staged, bytes, cudaMemcpyHostToDevice, stream()), "copy");
  used_ += (bytes + alignment - 1) / alignment * alignment;
}

void Staging::make_room() {
  if (used_ > half / 8) change_halves();
}

/// Begins the other half, once the copies from it have been made; an event never recorded is over.
void Staging::change_halves() {
  cut_recording();
  check(cudaEventRecord(left_[current_], stream()), "cudaEventRecord");
  current_ = 1 - current_;
  used_ = 0;
  check(cudaEventSynchronize(left_[current_]), "copy");
}

Staging& staging() {
  (void)stream();  // made before it, and so destroyed after it
  thread_local Staging own;
  return own;
}

}  // namespace halfscope::cuda
