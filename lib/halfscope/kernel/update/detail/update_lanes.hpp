// Counts of rounded weight updates in fixed lanes, and ratios of updates to weights.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <halfscope/kernel/histogram/histogram.hpp>
#include <halfscope/kernel/update/update_effect.hpp>

namespace halfscope {

/// Counts, and sums in double precision: element i of an array is added to lane i % 32, so that the sums do
/// not depend on the instruction set.
struct UpdateLanes {
  static constexpr std::size_t lanes = update_effect_lanes;

  std::int64_t nonzero = 0;              ///< updates that are not zero
  std::int64_t lost = 0;                 ///< nonzero updates that leave the weight as it was stored
  std::array<double, lanes> applied{};   ///< |updated - stored|, where that is finite
  std::array<double, lanes> intended{};  ///< |update| of the same elements

  friend bool operator==(const UpdateLanes&, const UpdateLanes&) = default;
};

/// Arrays of one size: the weights as stored, as they are after the update, and the update.
struct UpdateArrays {
  const float* stored;
  const float* updated;
  const float* update;
  std::size_t count;
};

/// out[i] = `updated_weight` of stored[i] and update[i]. All three have the same size.
void add_updates(std::span<const float> stored, std::span<const float> update, int mantissa_bits,
                 std::span<float> out);

/// Adds the elements of the arrays to the counters, the first of them to lane 0.
void count_updates(const UpdateArrays& arrays, UpdateLanes& counters);

/// out[i] = |updates[i] / weights[i]|, and 0 where one of them is zero. Returns how many those are.
[[nodiscard]] std::size_t update_ratios(std::span<const float> weights, std::span<const float> updates,
                                        std::span<float> out);

/// Elements that are worth a call of the histogram's kernel, which clears its tables.
inline constexpr std::size_t ratio_block = std::size_t{1} << 15;

/// Adds |updates[i] / weights[i]| of the elements in which neither is zero to `counts`, in CPU memory and on
/// this thread.
void add_update_ratios(std::span<const float> weights, std::span<const float> updates,
                       HistogramCounts& counts, const BinadeEdges& edges = binade_edges(fp16));

}  // namespace halfscope
