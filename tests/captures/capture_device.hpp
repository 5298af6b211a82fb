// Runs captured sets on the current CUDA device.
#pragma once

#include <vector>

#include <halfscope/kernel/gemm/gemm_ordered.hpp>

#include "tests/captures/capture.hpp"

namespace halfscope {

/// All results of a set, tile after tile, row after row. Throws RuntimeFailure where CUDA fails.
[[nodiscard]] std::vector<std::uint32_t> run_set(const CaptureSet& set);
/// A function's results for all 65,536 codes. Throws InvalidArgument for one that is not known.
[[nodiscard]] std::vector<std::uint32_t> run_function(std::string_view name);

/// Why the device cannot run the set, or nothing: wgmma and FP8 need capability 9.0, other sets 8.0.
[[nodiscard]] std::string obstacle_to(const CaptureSet& set);

/// The device, and what it is driven by. Throws RuntimeFailure without a device.
[[nodiscard]] CaptureOrigin capture_origin();
/// The toolkit of this build, "13.0".
[[nodiscard]] std::string toolkit_version();

/// Device pointers to all tiles' operands, and to the results: codes, or bits of sums.
struct DeviceTiles {
  const std::uint32_t* a;
  const std::uint32_t* b;
  const std::uint32_t* c;
  std::uint32_t* results;
};

/// Queues the mma.sync of a set of TF32 or FP8, a warp per tile.
void launch_narrow_mma(const CaptureSet& set, const DeviceTiles& tiles);
/// Queues the wgmma of a set, one block of a warpgroup per tile; in a file of its own, for sm_90a alone.
void launch_wgmma(const CaptureSet& set, const DeviceTiles& tiles);

}  // namespace halfscope
