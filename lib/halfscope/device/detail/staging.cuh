// Host memory through which copies go to the CUDA device without anyone waiting for them.
#pragma once

#include <cstddef>

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

 private:
  void change_halves();

  void* memory_ = nullptr;
  cudaEvent_t left_[2] = {};
  std::size_t current_ = 0, used_ = 0;
};

/// This thread's.
[[nodiscard]] Staging& staging();

}  // namespace halfscope::cuda
