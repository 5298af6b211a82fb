// Host memory through which copies go to the CUDA device without anyone waiting for them.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <halfscope/device/detail/device_cuda.cuh>

namespace halfscope::cuda {

/// Pinned memory in two halves: one is filled while the copies from the other may still be under way.
class Staging {
 public:
  static constexpr std::size_t half = std::size_t{16} << 20;  ///< bytes that a copy has at most

  Staging();
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Queues the copy; `from` may change once it returns.
  void copy(void* to, const void* from, std::size_t bytes);
  /// Makes room for much of a half: a recording must not change halves, which waits for the device.
  void make_room();
  /// Marks the end of the copies queued to this thread's stream, which is not being recorded. It is called
  /// before the thread takes another stream: an event there would not wait for them.
  void leave_stream();

 private:
  struct DestroyEvent {
    void operator()(cudaEvent_t event) const { (void)cudaEventDestroy(event); }
  };
  using Event = std::unique_ptr<CUevent_st, DestroyEvent>;

  void change_halves();

  void* memory_ = nullptr;
  std::vector<Event> copied_[2];  ///< for each half, the ends of the copies from it, by stream
  bool unmarked_ = false;         ///< copies were queued to the current stream after its last event
  std::size_t current_ = 0, used_ = 0;
};

/// This thread's.
[[nodiscard]] Staging& staging();
/// Has this thread's staging leave its stream; a thread that never copied has none.
void leave_stream();

}  // namespace halfscope::cuda
