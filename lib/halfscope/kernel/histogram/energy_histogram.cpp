// Takes arrays apart for the energy histogram's loops, and empties its tables.
#include <halfscope/kernel/histogram/energy_histogram.hpp>

#include <halfscope/kernel/histogram/detail/energy_histogram_simd.hpp>

#include <algorithm>

#include <halfscope/kernel/histogram/detail/histogram_bins.hpp>

namespace halfscope {
namespace {

constexpr std::size_t piece = 16384;
/// Numbers of one bin that a table can count, whose squares then stay below 2^48.
constexpr std::uint32_t full = 65535;

}  // namespace

void energy_histogram(std::span<const float> values, EnergyHistogram& found) {
  for (std::size_t start = 0; start < values.size(); start += piece) {
    const std::size_t count = std::min(piece, values.size() - start);
    const auto more = static_cast<std::uint32_t>(count / EnergyTables::tables + count % EnergyTables::tables);
    if (found.tables.most + more > full) settle(found);
    found.tables.most += more;
    dispatch_isa([&]<Isa isa>() { energy_histogram_isa<isa>(values.data() + start, count, found); });
  }
}

void settle(EnergyHistogram& found) {
  const OrderedEdges edges(found.edges);
  std::array<std::int64_t, bins> counts{};
  for (std::size_t bin = 0; bin < bins; ++bin) {
    std::uint64_t squares = 0;  // total of eight sums below 2^48
    for (const std::uint64_t sum : found.tables.sums[bin]) {
      counts[bin] += static_cast<std::int64_t>(sum >> 48);
      squares += sum & ((std::uint64_t{1} << 48) - 1);
    }
    const bool normal = bin / classes != 0 && bin / classes != 255;
    if (!normal || counts[bin] == 0) continue;
    const auto binade = static_cast<int>(bin / classes) - 127 - lowest_binade;
    BinadeEnergy& energy = found.energies.at(static_cast<std::size_t>(binade));
    energy.all += squares;
    if (bin % classes >= edges.normal_class) energy.rounds_to_normal += squares;
  }
  const Extremes seen{found.tables.negative_zeros, found.tables.max_finite, 0, 255};
  add_bins(counts.data(), seen, edges, found.counts);
  add_extremes(seen, found.counts);
  found.tables = {};
}

}  // namespace halfscope
