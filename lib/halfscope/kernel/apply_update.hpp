// A whole weight update on the device in one pass over its arrays; on the CPU the kernels of scaling, the
// optimizers, update_effect and adding do the same one after the other.
#pragma once

#include <optional>
#include <span>

#include <halfscope/kernel/counted_round.hpp>
#include <halfscope/kernel/update.hpp>
#include <halfscope/kernel/update_effect.hpp>

namespace halfscope::cuda {

/// What an update applied and intended, added up over a tile.
struct UpdateSums {
  double applied, intended;
};

/// The bins of |update| / |weight|, then how many updates there are and how many are lost.
inline constexpr std::size_t watch_counters = binned::size + 2;

/// Where an update is counted, on the device: zero before.
struct UpdateWatch {
  WeightStorage storage;             ///< in which updates get lost
  std::span<std::int64_t> counters;  ///< watch_counters
  std::span<UpdateSums> sums;        ///< one per tile
};
/// How many tiles the updates of `elements` weights have.
[[nodiscard]] constexpr std::size_t watch_tiles(std::size_t elements) {
  constexpr auto tile = static_cast<std::size_t>(update_effect_tile);
  return (elements + tile - 1) / tile;
}

/// weights += the optimizer's update from gradient * unscale * clip.
struct AppliedUpdate {
  std::span<const float> gradient;
  float unscale = 1, clip = 1;  ///< multiplied one after the other, each product rounded
  std::span<float> weights;
  /// One magnitude's bits, to be raised to the largest of the new weights: a NaN's are above infinity's.
  std::span<std::uint32_t> largest;
  std::optional<UpdateWatch> watch{};
};

/// As sgd_update and adam_update, whose update is `add`ed; counted as `update_effect` and `ratio_histogram`
/// count it.
void apply_sgd(const AppliedUpdate& update, const SgdStep& step, const Quantizer& state,
               std::span<float> velocity);
void apply_adam(const AppliedUpdate& update, const AdamStep& step, const Quantizer& state,
                std::span<float> first, std::span<float> second);

/// What the counters and sums of a watch say once they have come to the host.
[[nodiscard]] UpdateEffect watched_effect(std::span<const std::int64_t> counters,
                                          std::span<const UpdateSums> sums);

}  // namespace halfscope::cuda
