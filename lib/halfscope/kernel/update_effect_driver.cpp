// The effect of updates, tile by tile through the rounding kernel.
#include <algorithm>
#include <array>
#include <numeric>

#include <halfscope/kernel/round.hpp>
#include <halfscope/kernel/update_effect_element.hpp>
#include <halfscope/kernel/update_tally.hpp>

namespace halfscope {
namespace {

constexpr std::size_t tile = update_effect_tile;

double sum_of(const std::array<double, UpdateTally::lanes>& lanes) {
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

void add_tile(const UpdateArrays& arrays, UpdateEffect& total) {
  UpdateTally tally;
  tally_updates(arrays, tally);
  total.nonzero += tally.nonzero;
  total.lost += tally.lost;
  total.applied += sum_of(tally.applied);
  total.intended += sum_of(tally.intended);
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
    add_updates(stored, update, storage.after.format.mantissa_bits, updated);
    round(updated, updated, storage.after,
          RandomStream{start / tile, storage.stream.step, storage.stream.site});
    add_tile({stored.data(), updated.data(), update.data(), count}, total);
  }
  return total;
}

}  // namespace halfscope
