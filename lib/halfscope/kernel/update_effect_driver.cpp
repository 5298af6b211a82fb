// The effect of updates, tile by tile through the rounding kernel.
#include <algorithm>
#include <array>

#include <halfscope/kernel/round.hpp>
#include <halfscope/kernel/update_effect_element.hpp>

namespace halfscope {
namespace {

constexpr std::size_t tile = update_effect_tile, lanes = update_effect_lanes;

struct Tile {
  std::span<const float> stored, updated, updates;
};

void add_tile(const Tile& here, UpdateEffect& total) {
  std::array<double, lanes> applied{}, intended{};
  std::uint32_t nonzero = 0, lost = 0;
  for (std::size_t i = 0; i < here.updates.size(); ++i) {
    const UpdateOutcome outcome = update_outcome(here.stored[i], here.updated[i], here.updates[i]);
    nonzero += outcome.nonzero;
    lost += outcome.lost;
    applied[i % lanes] += outcome.applied;
    intended[i % lanes] += outcome.intended;
  }
  total.nonzero += nonzero;
  total.lost += lost;
  double tile_applied = 0, tile_intended = 0;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    tile_applied += applied[lane];
    tile_intended += intended[lane];
  }
  total.applied += tile_applied;
  total.intended += tile_intended;
}

}  // namespace

UpdateEffect update_effect(std::span<const float> weights, std::span<const float> updates,
                           const WeightStorage& storage) {
  if (weights.size() != updates.size())
    throw RequestError("update_effect: weights and updates differ in size");
  if (active_device() == Device::cuda) return cuda::update_effect(weights, updates, storage);
  UpdateEffect total;
  std::array<float, tile> stored_buffer, updated_buffer;
  for (std::size_t start = 0; start < weights.size(); start += tile) {
    const std::size_t count = std::min(tile, weights.size() - start);
    const std::span stored(stored_buffer.data(), count), updated(updated_buffer.data(), count);
    const auto update = updates.subspan(start, count);
    round(weights.subspan(start, count), stored, storage.before);
    for (std::size_t i = 0; i < count; ++i) {
      updated[i] = updated_weight(stored[i], update[i], storage.after.format.mantissa_bits);
    }
    round(updated, updated, storage.after,
          RandomStream{start / tile, storage.stream.step, storage.stream.site});
    add_tile({stored, updated, update}, total);
  }
  return total;
}

}  // namespace halfscope
