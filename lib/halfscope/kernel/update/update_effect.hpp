// Effect of weight updates on weights that are stored in a format of few bits.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/core/random.hpp>
#include <halfscope/format/quantizer.hpp>

namespace halfscope {

/// Updates that are not zero, those of them that leave the stored weight as it is, and how far all of them
/// move it: what is applied and what was intended, over those whose weight stays finite.
struct UpdateEffect {
  std::int64_t nonzero = 0;
  std::int64_t lost = 0;
  double applied = 0;
  double intended = 0;

  friend bool operator==(const UpdateEffect&, const UpdateEffect&) = default;
};

/// How weights are stored: those at hand are rounded by `before` first, the sums by `after`. Element i draws
/// the random bits of index i % tile from `stream` with the seed i / tile.
struct WeightStorage {
  Quantizer before, after;
  RandomStream stream;
};

/// Sums of `update_effect`: element i goes to lane i % 32 of tile i / 1024; a tile's lanes are added in
/// ascending order, then the tiles, from zero: an order in which many threads can add.
inline constexpr std::int64_t update_effect_tile = 1024, update_effect_lanes = 32;
/// How many tiles the updates of `elements` weights have.
[[nodiscard]] constexpr std::size_t update_tiles(std::size_t elements) {
  constexpr auto tile = static_cast<std::size_t>(update_effect_tile);
  return (elements + tile - 1) / tile;
}

/// Effect on `weights` to which `updates`, as many, are added: the sums are exact before they are rounded.
/// Throws InvalidArgument where the two differ in size.
[[nodiscard]] UpdateEffect update_effect(std::span<const float> weights, std::span<const float> updates,
                                         const WeightStorage& storage);

/// Effect on each tile, on this thread and in CPU memory; the first of them is tile `first` of its array.
/// Throws InvalidArgument where the arrays differ in size, or have another number of tiles.
void update_effects(std::span<const float> weights, std::span<const float> updates,
                    const WeightStorage& storage, std::size_t first, std::span<UpdateEffect> tiles);

/// Adds what one array or tile did to what those before it did.
constexpr UpdateEffect& operator+=(UpdateEffect& total, const UpdateEffect& next) {
  total.nonzero += next.nonzero;
  total.lost += next.lost;
  total.applied += next.applied;
  total.intended += next.intended;
  return total;
}

/// The same effect on arrays on the device, which `update_effect` calls where that is the active one.
namespace cuda {
[[nodiscard]] UpdateEffect update_effect(std::span<const float> weights, std::span<const float> updates,
                                         const WeightStorage& storage);

/// Queues it. `numbers`, zeros on the device, become the two counts and the bits of the two sums.
inline constexpr std::size_t update_effect_numbers = 4;
void queue_update_effect(std::span<const float> weights, std::span<const float> updates,
                         const WeightStorage& storage, std::span<std::int64_t> numbers);
}  // namespace cuda

}  // namespace halfscope
