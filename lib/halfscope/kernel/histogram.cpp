// The loops of the exponent histogram, compiled once per instruction set.
#include <halfscope/kernel/histogram.hpp>

#include <cstring>

#include <halfscope/kernel/histogram_tile.hpp>

// Nothing here may be emitted out of line under a name that other translation units share: everything is in
// an unnamed namespace or always inlined.
namespace halfscope {
namespace {

/// As many private tables as numbers are counted at a time, so that no increment waits for the one before.
constexpr std::size_t tables = 8;
constexpr std::size_t tile = 1024;
/// Numbers that the 16-bit counters of the tables can take in before they must be emptied.
constexpr std::size_t numbers_per_flush = tile * 256;
static_assert(numbers_per_flush / tables < 65536);

struct Tables {
  alignas(64) std::uint16_t counts[tables][bins] = {};
  Extremes extremes;
};

void count_bins(const std::uint16_t* bin, std::size_t count, Tables& t) {
  std::size_t i = 0;
  for (; i + tables <= count; i += tables) {
    std::uint64_t four[2];  // 64-bit loads: fewer of them than of 16-bit ones
    std::memcpy(four, bin + i, sizeof four);
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t j = 0; j < 4; ++j) ++t.counts[4 * half + j][(four[half] >> (16 * j)) & 0xFFFF];
    }
  }
  for (; i < count; ++i) ++t.counts[0][bin[i]];
}

/// Empties the tables into `counts`; `values` are the numbers that they hold, read again only for subnormals.
void flush(const float* values, std::size_t count, const OrderedEdges& edges, const Tables& t,
           HistogramCounts& counts) {
  std::int64_t sums[bins] = {};
  const auto first = static_cast<std::size_t>(t.extremes.first_field) * classes;
  const auto last = static_cast<std::size_t>(t.extremes.last_field + 1) * classes;
  for (std::size_t bin = first; bin < last; ++bin) {
    std::int32_t sum = 0;
    for (std::size_t table = 0; table < tables; ++table) sum += t.counts[table][bin];
    sums[bin] = sum;
  }
  add_bins(sums, t.extremes, edges, counts);
  add_extremes(t.extremes, counts);
  if (sums[plain] + sums[past_first] + sums[past_both] == 0) return;
  const auto add = [&](std::size_t binade, std::uint32_t /*significand*/, std::uint32_t number_class) {
    add_to_binade(counts.binades.data()[binade], number_class, 1, edges);
  };
  for_each_subnormal(values, count, edges, add);
}

}  // namespace

template <>
void histogram_isa<target_isa>(const float* values, std::size_t count, const BinadeEdges& binade_edges,
                               HistogramCounts& counts) {
  const OrderedEdges edges(binade_edges);
  for (std::size_t start = 0; start < count; start += numbers_per_flush) {
    const std::size_t here = count - start < numbers_per_flush ? count - start : numbers_per_flush;
    Tables t;
    std::uint16_t bin[tile];
    for (std::size_t i = 0; i < here; i += tile) {
      const std::size_t numbers = here - i < tile ? here - i : tile;
      find_bins(values + start + i, numbers, edges, bin, t.extremes);
      count_bins(bin, numbers, t);
    }
    flush(values + start, here, edges, t, counts);
  }
}

}  // namespace halfscope
