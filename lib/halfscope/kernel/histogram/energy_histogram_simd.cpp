// The loops of the energy histogram, compiled once per instruction set.
#include <halfscope/kernel/histogram/detail/energy_histogram_simd.hpp>

#include <halfscope/kernel/histogram/detail/histogram_tile.hpp>

namespace halfscope {
namespace {

constexpr std::size_t tile = 1024;
constexpr std::uint64_t one_number = std::uint64_t{1} << 48;
static_assert(EnergyTables::bins == bins);

/// Squares of the top 16 bits of the significands, as those of normal numbers.
void find_squares(const float* values, std::size_t count, std::uint32_t* out) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t significand = (to_bits(values[i]) & 0x7FFFFFu) | 0x800000u;
    out[i] = (significand >> 8) * (significand >> 8);
  }
}

void add_tile(const std::uint16_t* bin, const std::uint32_t* square, std::size_t count, EnergyTables& t) {
  constexpr std::size_t tables = EnergyTables::tables;
  std::size_t i = 0;
  for (; i + tables <= count; i += tables) {
    for (std::size_t j = 0; j < tables; ++j) t.sums[bin[i + j]][j] += one_number + square[i + j];
  }
  for (; i < count; ++i) t.sums[bin[i]][0] += one_number + square[i];
}

/// Whether there are subnormals in the tables; they are taken out.
bool take_subnormals(EnergyTables& t) {
  std::uint64_t seen = 0;
  for (const FractionClass bin : {plain, past_first, past_both}) {
    for (std::uint64_t& sum : t.sums[bin]) {
      seen |= sum;
      sum = 0;
    }
  }
  return seen != 0;
}

}  // namespace

template <>
void energy_histogram_isa<target_isa>(const float* values, std::size_t count, EnergyHistogram& found) {
  const OrderedEdges edges(found.edges);
  Extremes seen{found.tables.negative_zeros, found.tables.max_finite};
  for (std::size_t i = 0; i < count; i += tile) {
    const std::size_t numbers = count - i < tile ? count - i : tile;
    std::uint16_t bin[tile];
    std::uint32_t square[tile];
    find_bins(values + i, numbers, edges, bin, seen);
    find_squares(values + i, numbers, square);
    add_tile(bin, square, numbers, found.tables);
  }
  found.tables.negative_zeros = seen.negative_zeros;
  found.tables.max_finite = seen.max_finite;
  if (!take_subnormals(found.tables)) return;
  const auto add = [&](std::size_t binade, std::uint32_t significand, std::uint32_t number_class) {
    const std::uint32_t square = (significand >> 8) * (significand >> 8);
    add_to_binade(found.counts.binades.data()[binade], number_class, 1, edges);
    found.energies.data()[binade].all += square;
    if (number_class >= edges.normal_class) found.energies.data()[binade].rounds_to_normal += square;
  };
  for_each_subnormal(values, count, edges, add);
}

}  // namespace halfscope
