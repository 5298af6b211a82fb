// Effect of weight updates, summed by threads of the device lane by lane and tile by tile; only for kernels.
#pragma once

#include <halfscope/format/round.hpp>
#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/kernel/detail/launch.cuh>
#include <halfscope/kernel/update/detail/update_effect_element.hpp>
#include <halfscope/kernel/update/detail/update_watch.hpp>

namespace halfscope::cuda {
namespace {

/// The elements of a lane of a tile: first, first + update_effect_lanes, ... below last.
struct LaneRange {
  std::int64_t tile, first, last;

  HALFSCOPE_HD LaneRange(std::int64_t lane, std::int64_t count)
      : tile(lane / update_effect_lanes),
        first(tile * update_effect_tile + lane % update_effect_lanes),
        last((tile + 1) * update_effect_tile < count ? (tile + 1) * update_effect_tile : count) {}
};

/// Adds up what the updates of a lane do.
struct LaneEffect {
  WeightStorage storage;
  RandomStream stream;  ///< the tile's
  UpdateOutcome total{};

  HALFSCOPE_HD LaneEffect(const WeightStorage& stored, const LaneRange& lane)
      : storage(stored),
        stream{static_cast<std::uint64_t>(lane.tile), stored.stream.step, stored.stream.site} {}

  HALFSCOPE_HD void add(std::int64_t i, float weight, float update) {
    const float stored = round(weight, storage.before);
    const float sum = updated_weight(stored, update, storage.after.format.mantissa_bits);
    std::uint32_t random_bits = 0;
    if (storage.after.rounding == Rounding::stochastic)
      random_bits = rounding_bits(stream, static_cast<std::uint64_t>(i % update_effect_tile));
    const UpdateOutcome outcome = update_outcome(stored, round(sum, storage.after, random_bits), update);
    total.nonzero += outcome.nonzero;
    total.lost += outcome.lost;
    total.applied += outcome.applied;
    total.intended += outcome.intended;
  }

  /// The two counts go to `first_bin` and the one after it.
  HALFSCOPE_HD void finish(UpdateSums& sums, BlockBins bins, std::uint32_t first_bin) const {
    sums = {total.applied, total.intended};
    if (total.nonzero != 0) bins.count(first_bin, total.nonzero);
    if (total.lost != 0) bins.count(first_bin + 1, total.lost);
  }
};

/// Adds the lanes of a tile in ascending order.
struct AddTile {
  const UpdateSums* lanes;
  UpdateSums* tiles;
  HALFSCOPE_HD void operator()(std::int64_t tile) const {
    UpdateSums total{};
    for (std::int64_t lane = 0; lane < update_effect_lanes; ++lane) {
      total.applied += lanes[tile * update_effect_lanes + lane].applied;
      total.intended += lanes[tile * update_effect_lanes + lane].intended;
    }
    tiles[tile] = total;
  }
};

}  // namespace
}  // namespace halfscope::cuda
