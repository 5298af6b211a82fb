// Runs an operation on the CPU and on the CUDA device - the simulated one in a build without CUDA - and
// compares every bit but those of NaNs.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include <halfscope/device/device.hpp>

#include "tests/support/catch.hpp"

namespace halfscope {

/// Whether Device::cuda can be used: the simulated device in a build without CUDA. Where it cannot, says that
/// the test is skipped.
[[nodiscard]] bool can_use_device();

/// None, one, no whole vector, one to four numbers behind the last whole four (random bits come in fours),
/// and more than a block of threads.
inline constexpr std::size_t parity_sizes[] = {0, 1, 31, 254, 256, 257 * 259};

/// Any floats, special values among them.
[[nodiscard]] std::vector<float> mixed_floats(std::size_t size);

using Spans = std::vector<std::span<float>>;

/// The arrays after `operation` has worked on copies of `arrays` on `device`, each with 16 sentinels before
/// and behind it, which are checked to be untouched.
[[nodiscard]] std::vector<std::vector<float>> run_on(Device device,
                                                     const std::vector<std::vector<float>>& arrays,
                                                     const std::function<void(const Spans&)>& operation);

/// Checks that `operation` makes the same bits of `arrays` on the CPU and on the device, any NaN being equal
/// to any other. Says that the test is skipped where there is no device.
void check_device_parity(const std::vector<std::vector<float>>& arrays,
                         const std::function<void(const Spans&)>& operation);

}  // namespace halfscope
