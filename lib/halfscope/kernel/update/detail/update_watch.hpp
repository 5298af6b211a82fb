// Counts of an update while it is made: ratios, updates that are lost, and sums per tile.
#pragma once

#include <span>

#include <halfscope/kernel/histogram/binned_histogram.hpp>
#include <halfscope/kernel/update/update_effect.hpp>

namespace halfscope {

/// Applied and intended updates, added up over a tile.
struct UpdateSums {
  double applied, intended;
};

/// The bins of |update| / |weight|, then how many updates there are and how many are lost.
inline constexpr std::uint32_t first_effect_bin = binned::size;
inline constexpr std::size_t watch_counters = first_effect_bin + 2;

/// Where an update is counted, in memory of the active device: zero before.
struct UpdateWatch {
  WeightStorage storage;             ///< in which updates get lost
  std::span<std::int64_t> counters;  ///< watch_counters
  std::span<UpdateSums> sums;        ///< one per tile
};

/// Effect in the counters and sums of a watch, which lie on the host.
[[nodiscard]] UpdateEffect watched_effect(std::span<const std::int64_t> counters,
                                          std::span<const UpdateSums> sums);

}  // namespace halfscope
