// The effect of updates on the device: a thread per lane of a tile, then one per tile.
#include <halfscope/core/detail/equal_sizes.hpp>
#include <halfscope/device/memory.hpp>
#include <halfscope/kernel/update/detail/update_effect.cuh>

namespace halfscope::cuda {
namespace {

enum Number : std::uint32_t { nonzero, lost, counts, applied = counts, intended };

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

/// One thread, for the order of the sum.
struct AddAll {
  const UpdateSums* tiles;
  std::int64_t count;
  std::int64_t* numbers;
  HALFSCOPE_HD void operator()(std::int64_t) const {
    UpdateSums total{};
    for (std::int64_t tile = 0; tile < count; ++tile) {
      total.applied += tiles[tile].applied;
      total.intended += tiles[tile].intended;
    }
    numbers[applied] = __builtin_bit_cast(std::int64_t, total.applied);
    numbers[intended] = __builtin_bit_cast(std::int64_t, total.intended);
  }
};

}  // namespace

void queue_update_effect(std::span<const float> weights, std::span<const float> updates,
                         const WeightStorage& storage, std::span<std::int64_t> numbers) {
  detail::check_equal_sizes("queue_update_effect", weights.size(), updates.size());
  detail::check_equal_sizes("queue_update_effect: numbers", update_effect_numbers, numbers.size());
  const std::size_t tiles = update_tiles(weights.size());
  const auto tile_count = static_cast<std::int64_t>(tiles), lanes = tile_count * update_effect_lanes;
  Memory<UpdateSums> lane_sums(static_cast<std::size_t>(lanes)), tile_sums(tiles);
  const std::span<const UpdateSums> of_lanes = lane_sums.values(), of_tiles = tile_sums.values();
  count_each(lanes, numbers.first(counts),
             AddLane{on_device(weights), on_device(updates), std::ssize(weights), storage,
                     on_device(lane_sums.values())},
             "update_effect");
  for_each(tile_count, AddTile{on_device(of_lanes), on_device(tile_sums.values())}, "update_effect");
  for_each(1, AddAll{on_device(of_tiles), tile_count, on_device(numbers)}, "update_effect");
}

UpdateEffect update_effect(std::span<const float> weights, std::span<const float> updates,
                           const WeightStorage& storage) {
  auto numbers = Memory<std::int64_t>::zeros(update_effect_numbers);
  queue_update_effect(weights, updates, storage, numbers.values());
  const std::vector<std::int64_t> found = numbers.to_host();
  return {found[nonzero], found[lost], __builtin_bit_cast(double, found[applied]),
          __builtin_bit_cast(double, found[intended])};
}

}  // namespace halfscope::cuda
