// Runs a CUDA kernel of the library on host data; for tests in builds with CUDA.
#pragma once

#include <functional>
#include <vector>

namespace halfscope {

[[nodiscard]] bool has_device();

/// Copies `in` to the device, calls launch(in, out) with device pointers to in.size() floats, and copies
/// `out` back. Throws RunError where CUDA fails, in the kernel too.
[[nodiscard]] std::vector<float> run_on_device(const std::vector<float>& in,
                                               const std::function<void(const float*, float*)>& launch);

}  // namespace halfscope
