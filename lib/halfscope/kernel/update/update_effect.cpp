// The effect of updates, tile by tile through the rounding kernel.
#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include <halfscope/core/detail/equal_sizes.hpp>
#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/kernel/update/detail/update_effect_element.hpp>
#include <halfscope/kernel/update/detail/update_lanes.hpp>

namespace halfscope {
namespace {

constexpr std::size_t tile = update_effect_tile;

double sum_of(const std::array<double, UpdateLanes::lanes>& lanes) {
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

UpdateEffect effect_of(const UpdateArrays& arrays) {
  UpdateLanes counters;
  count_updates(arrays, counters);
  return {counters.nonzero, counters.lost, sum_of(counters.applied), sum_of(counters.intended)};
}

/// Effect on one tile, which is the `index`-th of its array.
UpdateEffect tile_effect(std::span<const float> weights, std::span<const float> update,
                         const WeightStorage& storage, std::size_t index) {
  std::array<float, tile> stored_buffer, updated_buffer;
  const std::span stored(stored_buffer.data(), weights.size()),
      updated(updated_buffer.data(), weights.size());
  round(weights, stored, storage.before);
  add_updates(stored, update, storage.after.format.mantissa_bits, updated);
  round(updated, updated, storage.after, RandomStream{index, storage.stream.step, storage.stream.site});
  return effect_of({stored.data(), updated.data(), update.data(), update.size()});
}

}  // namespace

UpdateEffect update_effect(std::span<const float> weights, std::span<const float> updates,
                           const WeightStorage& storage) {
  detail::check_equal_sizes("update_effect", weights.size(), updates.size());
  if (active_device() == Device::cuda) return cuda::update_effect(weights, updates, storage);
  std::vector<UpdateEffect> tiles(update_tiles(weights.size()));
  constexpr std::int64_t grain = 64;  // tiles worth a thread
  parallel_for_ranges(static_cast<std::int64_t>(tiles.size()), grain,
                      [&](std::int64_t first_tile, std::int64_t count) noexcept {
                        const auto first = static_cast<std::size_t>(first_tile);
                        const std::size_t start = first * tile;
                        const std::size_t size =
                            std::min(static_cast<std::size_t>(count) * tile, weights.size() - start);
                        update_effects(weights.subspan(start, size), updates.subspan(start, size), storage,
                                       first, std::span(tiles).subspan(first, update_tiles(size)));
                      });
  UpdateEffect total;
  for (const UpdateEffect& one : tiles) total += one;
  return total;
}

void update_effects(std::span<const float> weights, std::span<const float> updates,
                    const WeightStorage& storage, std::size_t first, std::span<UpdateEffect> tiles) {
  detail::check_equal_sizes("update_effects", weights.size(), updates.size());
  detail::check_equal_sizes("update_effects: tiles", update_tiles(weights.size()), tiles.size());
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const std::size_t count = std::min(tile, weights.size() - i * tile);
    tiles[i] =
        tile_effect(weights.subspan(i * tile, count), updates.subspan(i * tile, count), storage, first + i);
  }
}

}  // namespace halfscope
