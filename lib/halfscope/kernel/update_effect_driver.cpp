// The effect of updates, tile by tile through the rounding kernel.
#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/round.hpp>
#include <halfscope/kernel/update_effect_element.hpp>
#include <halfscope/kernel/update_tally.hpp>

namespace halfscope {
namespace {

constexpr std::size_t tile = update_effect_tile;

double sum_of(const std::array<double, UpdateTally::lanes>& lanes) {
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

UpdateEffect effect_of(const UpdateArrays& arrays) {
  UpdateTally tally;
  tally_updates(arrays, tally);
  return {tally.nonzero, tally.lost, sum_of(tally.applied), sum_of(tally.intended)};
}

UpdateEffect tile_effect(std::span<const float> weights, std::span<const float> updates,
                         const WeightStorage& storage, std::size_t index) {
  std::array<float, tile> stored_buffer, updated_buffer;
  const std::size_t start = index * tile, count = std::min(tile, weights.size() - start);
  const std::span stored(stored_buffer.data(), count), updated(updated_buffer.data(), count);
  const auto update = updates.subspan(start, count);
  round(weights.subspan(start, count), stored, storage.before);
  add_updates(stored, update, storage.after.format.mantissa_bits, updated);
  round(updated, updated, storage.after, RandomStream{index, storage.stream.step, storage.stream.site});
  return effect_of({stored.data(), updated.data(), update.data(), count});
}

}  // namespace

UpdateEffect update_effect(std::span<const float> weights, std::span<const float> updates,
                           const WeightStorage& storage) {
  if (weights.size() != updates.size())
    throw RequestError("update_effect: weights and updates differ in size");
  if (active_device() == Device::cuda) return cuda::update_effect(weights, updates, storage);
  std::vector<UpdateEffect> tiles((weights.size() + tile - 1) / tile);
  constexpr std::int64_t grain = 64;  // tiles worth a thread
  parallel_for_ranges(static_cast<std::int64_t>(tiles.size()), grain,
                      [&](std::int64_t first, std::int64_t count) noexcept {
                        for (auto i = static_cast<std::size_t>(first); count > 0; ++i, --count)
                          tiles[i] = tile_effect(weights, updates, storage, i);
                      });
  UpdateEffect total;
  for (const UpdateEffect& one : tiles) {
    total.nonzero += one.nonzero;
    total.lost += one.lost;
    total.applied += one.applied;
    total.intended += one.intended;
  }
  return total;
}

}  // namespace halfscope
