// The effect of updates on the device: a thread per lane of a tile, then one per tile.
#include <halfscope/core/memory.hpp>
#include <halfscope/kernel/update_effect.cuh>

namespace halfscope::cuda {
namespace {

struct AddLane {
  const float* weights;
  const float* updates;
  std::int64_t count;
  WeightStorage storage;
  UpdateSums* sums;  // (tiles, lanes)

  HALFSCOPE_HD void operator()(std::int64_t lane, BlockBins bins) const {
    const LaneRange range(lane, count);
    LaneEffect effect(storage, range);
    for (std::int64_t i = range.first; i < range.last; i += update_effect_lanes)
      effect.add(i, weights[i], updates[i]);
    effect.finish(sums[lane], bins, 0);
  }
};

}  // namespace

UpdateEffect update_effect(std::span<const float> weights, std::span<const float> updates,
                           const WeightStorage& storage) {
  const std::size_t tiles = watch_tiles(weights.size());
  const auto lanes = static_cast<std::int64_t>(tiles) * update_effect_lanes;
  auto counters = Memory<std::int64_t>::zeros(2);
  Memory<UpdateSums> lane_sums(static_cast<std::size_t>(lanes)), tile_sums(tiles);
  count_each(lanes, counters.values(),
             AddLane{on_device(weights), on_device(updates), std::ssize(weights), storage,
                     on_device(lane_sums.values())},
             "update_effect");
  for_each(static_cast<std::int64_t>(tiles),
           AddTile{on_device(std::span<const UpdateSums>(lane_sums.values())), on_device(tile_sums.values())},
           "update_effect");
  const std::vector<std::int64_t> counts = counters.to_host();
  UpdateEffect total{.nonzero = counts[0], .lost = counts[1]};
  for (const UpdateSums& tile : tile_sums.to_host()) {
    total.applied += tile.applied;
    total.intended += tile.intended;
  }
  return total;
}

}  // namespace halfscope::cuda
