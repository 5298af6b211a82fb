// Counts floats by binade and adds up their squares beside the counts, in integers: the same in any order.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <halfscope/arithmetic/exact.hpp>
#include <halfscope/kernel/histogram/histogram.hpp>

namespace halfscope {

/// Sums of the squares of significands, cut to their top 16 bits: a number of binade e has the square
/// 2^(2e - 30) times its term, to within 2^-14 of itself.
struct BinadeEnergy {
  Uint128 all = 0;
  Uint128 rounds_to_normal = 0;  ///< squares of the numbers in BinadeCounts::rounds_to_normal

  friend constexpr bool operator==(const BinadeEnergy&, const BinadeEnergy&) = default;
};
using BinadeEnergies = std::array<BinadeEnergy, highest_binade - lowest_binade + 1>;  // [e - lowest_binade]

/// Tables that take numbers in before they are added to the counts: a bin's sum holds how many in its upper
/// 16 bits, and their squares in the lower 48.
struct EnergyTables {
  static constexpr std::size_t tables = 8;  ///< so that no sum waits for the one before
  static constexpr std::size_t bins = 1024;

  /// A bin's sums fill a line of the cache: one table after the other would put all of them in one set of it.
  alignas(64) std::uint64_t sums[bins][tables] = {};
  std::uint32_t most = 0;  ///< numbers that a table may hold by now
  std::uint32_t negative_zeros = 0;
  std::int32_t max_finite = 0;  ///< the magnitude's bits
};

/// Counts of passes over arrays. `tables` may hold numbers that `counts` and `energies` do not know of
/// yet, until `settle` has been called.
struct EnergyHistogram {
  BinadeEdges edges = binade_edges(fp16);
  HistogramCounts counts;
  BinadeEnergies energies{};
  EnergyTables tables;
};

/// Adds `values`, on one thread; arrays of any size may follow each other.
void energy_histogram(std::span<const float> values, EnergyHistogram& found);

/// Moves what the tables hold to the counts and energies.
void settle(EnergyHistogram& found);

}  // namespace halfscope
