// The simulated device of a build without CUDA: host memory that only its kernels may touch.
#pragma once

namespace halfscope::device_memory {

/// While one exists the simulated device's memory is accessible: a kernel runs, or a copy.
class SimulatedLaunch {
 public:
  SimulatedLaunch();
  ~SimulatedLaunch();
  SimulatedLaunch(const SimulatedLaunch&) = delete;
  SimulatedLaunch& operator=(const SimulatedLaunch&) = delete;
};

/// Whether `memory` is the simulated device's.
[[nodiscard]] bool is_simulated(const void* memory);

}  // namespace halfscope::device_memory
