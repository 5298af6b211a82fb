// Loops over weight updates with the instruction set in use.
#include <halfscope/kernel/update/detail/update_lanes.hpp>

#include <algorithm>
#include <array>

#include <halfscope/kernel/update/detail/update_lanes_simd.hpp>

namespace halfscope {

void add_updates(std::span<const float> stored, std::span<const float> update, int mantissa_bits,
                 std::span<float> out) {
  dispatch_isa([&]<Isa isa>() {
    add_updates_isa<isa>(stored.data(), update.data(), mantissa_bits, out.data(), out.size());
  });
}

void count_updates(const UpdateArrays& arrays, UpdateLanes& counters) {
  dispatch_isa([&]<Isa isa>() { count_updates_isa<isa>(arrays, counters); });
}

std::size_t update_ratios(std::span<const float> weights, std::span<const float> updates,
                          std::span<float> out) {
  return dispatch_isa([&]<Isa isa>() {
    return update_ratios_isa<isa>(weights.data(), updates.data(), out.data(), out.size());
  });
}

void add_update_ratios(std::span<const float> weights, std::span<const float> updates,
                       HistogramCounts& counts, const BinadeEdges& edges) {
  std::array<float, ratio_block> buffer;
  for (std::size_t start = 0; start < weights.size(); start += ratio_block) {
    const std::span ratios = std::span(buffer).first(std::min(ratio_block, weights.size() - start));
    const std::size_t without =
        update_ratios(weights.subspan(start, ratios.size()), updates.subspan(start, ratios.size()), ratios);
    histogram(ratios, counts, edges);
    counts.zeros -= static_cast<std::int64_t>(without);
  }
}

}  // namespace halfscope
