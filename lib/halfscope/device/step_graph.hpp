// Work for the device that is recorded and launched at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace halfscope {

/// Records what is queued on the device and launches it as one CUDA graph: the one of the run before,
/// updated, where it has the same shape, else a new one. Work that cannot be recorded ends the recording
/// early: where the host waits for the device, or memory is wanted that was not released before, what has
/// been recorded is launched and the rest queued as usual. The numbers are the same either way. While a
/// thread has such an object, it keeps the device memory that it releases for itself.
class StepGraph {
 public:
  StepGraph();
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// Calls `queue`, whose first runs are not recorded: in them libraries and pools take what they need.
  void run(const std::function<void()>& queue);

  /// Counts of recorded runs by their outcome.
  struct Counts {
    std::int64_t whole = 0;    ///< launched as one graph
    std::int64_t cut = 0;      ///< ended early
    std::int64_t updated = 0;  ///< runs of either outcome whose graph was that of the run before
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  friend void cut_recording();
  void launch();

  void* executable_ = nullptr;
  int runs_ = 0;
  Counts counts_{};
};

/// Ends this thread's recording early; without one it does nothing.
void cut_recording();

namespace detail {
/// Device memory that this thread keeps; null, or false, where it keeps none of that size, or none at all.
[[nodiscard]] void* take_kept_block(std::size_t bytes);
[[nodiscard]] bool keep_block(void* memory, std::size_t bytes) noexcept;
}  // namespace detail

}  // namespace halfscope
