// The effect of updates on the device: a thread per lane of a tile, then one per tile.
#include <halfscope/core/memory.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/launch.cuh>
#include <halfscope/kernel/round.hpp>
#include <halfscope/kernel/update_effect_element.hpp>

namespace halfscope::cuda {
namespace {

enum Number : std::uint32_t { nonzero, lost, counts, applied = counts, intended };

struct Sums {
  double applied, intended;
};

struct AddLane {
  const float* weights;
  const float* updates;
  std::int64_t count;
  WeightStorage storage;
  Sums* sums;  // (tiles, lanes)

  HALFSCOPE_HD void operator()(std::int64_t lane, BlockBins bins) const {
    const std::int64_t tile = lane / update_effect_lanes;
    const std::int64_t last =
        (tile + 1) * update_effect_tile < count ? (tile + 1) * update_effect_tile : count;
    const RandomStream stream{static_cast<std::uint64_t>(tile), storage.stream.step, storage.stream.site};
    UpdateOutcome total{};
    for (std::int64_t i = tile * update_effect_tile + lane % update_effect_lanes; i < last;
         i += update_effect_lanes) {
      const float stored = round(weights[i], storage.before);
      const float sum = updated_weight(stored, updates[i], storage.after.format.mantissa_bits);
      std::uint32_t random_bits = 0;
      if (storage.after.rounding == Rounding::stochastic)
        random_bits = rounding_bits(stream, static_cast<std::uint64_t>(i % update_effect_tile));
      const UpdateOutcome outcome =
          update_outcome(stored, round(sum, storage.after, random_bits), updates[i]);
      total.nonzero += outcome.nonzero;
      total.lost += outcome.lost;
      total.applied += outcome.applied;
      total.intended += outcome.intended;
    }
    sums[lane] = {total.applied, total.intended};
    if (total.nonzero != 0) bins.count(nonzero, total.nonzero);
    if (total.lost != 0) bins.count(lost, total.lost);
  }
};

struct AddTile {
  const Sums* lanes;
  Sums* tiles;
  HALFSCOPE_HD void operator()(std::int64_t tile) const {
    Sums total{};
    for (std::int64_t lane = 0; lane < update_effect_lanes; ++lane) {
      total.applied += lanes[tile * update_effect_lanes + lane].applied;
      total.intended += lanes[tile * update_effect_lanes + lane].intended;
    }
    tiles[tile] = total;
  }
};

/// One thread, for the order of the sum.
struct AddAll {
  const Sums* tiles;
  std::int64_t count;
  std::int64_t* numbers;
  HALFSCOPE_HD void operator()(std::int64_t) const {
    Sums total{};
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
  const auto count = static_cast<std::int64_t>(weights.size());
  const std::int64_t tiles = (count + update_effect_tile - 1) / update_effect_tile;
  Memory<Sums> lane_sums(static_cast<std::size_t>(tiles * update_effect_lanes));
  Memory<Sums> tile_sums(static_cast<std::size_t>(tiles));
  count_each(tiles * update_effect_lanes, numbers.first(counts),
             AddLane{on_device(weights), on_device(updates), count, storage, on_device(lane_sums.values())},
             "update_effect");
  const std::span<const Sums> lanes = lane_sums.values(), all = tile_sums.values();
  for_each(tiles, AddTile{on_device(lanes), on_device(tile_sums.values())}, "update_effect");
  for_each(1, AddAll{on_device(all), tiles, on_device(numbers)}, "update_effect");
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
