// The loops of the exponent histogram, compiled once per instruction set.
#include <halfscope/kernel/histogram/detail/histogram_simd.hpp>

#include <cstring>

#include <halfscope/kernel/histogram/detail/histogram_pairs.hpp>

// Nothing here may be emitted out of line under a name that other translation units share: everything is in
// an unnamed namespace or always inlined.
namespace halfscope {
namespace {

/// As many private tables as numbers are counted at a time, so that no increment waits for the one before.
constexpr std::size_t tables = 8;
constexpr std::size_t tile = 1024;
/// Numbers that the 16-bit counters of all tables can take in before they must be emptied.
constexpr std::size_t numbers_per_block = PairTables::most_numbers;
static_assert(numbers_per_block / tables < 65536);

struct Tables {
  alignas(64) std::uint16_t counts[tables][bins] = {};
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

void count_one_by_one(const float* values, std::size_t count, const OrderedEdges& edges, BlockCounts& block) {
  Tables t;
  Extremes seen;
  std::uint16_t bin[tile];
  for (std::size_t i = 0; i < count; i += tile) {
    const std::size_t numbers = count - i < tile ? count - i : tile;
    find_bins(values + i, numbers, edges, bin, seen);
    count_bins(bin, numbers, t);
  }
  const auto first = static_cast<std::size_t>(seen.first_field) * classes;
  const auto last = static_cast<std::size_t>(seen.last_field + 1) * classes;
  for (std::size_t b = first; b < last; ++b) {
    std::int32_t sum = 0;
    for (std::size_t table = 0; table < tables; ++table) sum += t.counts[table][b];
    block.sums[b] += sum;
  }
  note_field(seen.first_field, block.extremes);
  note_field(seen.last_field, block.extremes);
  block.extremes.negative_zeros += seen.negative_zeros;
  block.extremes.max_finite =
      block.extremes.max_finite > seen.max_finite ? block.extremes.max_finite : seen.max_finite;
}

/// Whether emptying the tables of pairs does not outweigh what they save, and few numbers reach an edge.
bool pays_in_pairs(std::size_t count, const OrderedEdges& edges) {
  return count >= 4 * PairTables::tile && edges.first >= (1 << 23) - (1 << 14);
}

/// From a little above the largest number of the first tile down; that of zeros tells nothing.
Window window_of(const float* values, const OrderedEdges& edges) {
  constexpr auto infinity = static_cast<std::int32_t>(infinity_bits);
  std::int32_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (std::size_t i = 0; i < PairTables::tile; ++i) {
    const auto magnitude = static_cast<std::int32_t>(magnitude_bits(values[i]));
    const std::int32_t finite = magnitude < infinity ? magnitude : 0;
    largest = largest > finite ? largest : finite;
  }
  const auto field = static_cast<std::uint32_t>(largest == 0 ? 127 : (largest >> 23) + 3);
  return {field < 254 ? field : 254, edges};
}

/// Whether few numbers of the first tile are marked, which is quicker to find out than to count them.
bool suits_pairs(const float* values, const Window& shared_window) {
  const Window window = shared_window;
  std::uint32_t marks = 0;
#pragma omp simd reduction(+ : marks)
  for (std::size_t i = 0; i < PairTables::tile; ++i) {
    const std::uint32_t magnitude = magnitude_bits(values[i]);
    marks += window.marks(magnitude) | window.is_outside(magnitude);
  }
  return marks <= PairTables::most_marks;
}

/// Returns how many numbers were counted: not all where the pairs do not suit them.
std::size_t count_in_pairs(const float* values, std::size_t count, const OrderedEdges& edges,
                           BlockCounts& block) {
  const Window window = window_of(values, edges);
  if (!suits_pairs(values, window)) return 0;
  PairTables pairs(window, edges);
  std::size_t done = 0;
  std::uint32_t marks = 0;
  for (; done + PairTables::tile <= count && marks <= PairTables::most_marks; done += PairTables::tile) {
    marks = pairs.add_tile(values + done, block);
  }
  pairs.settle(block);
  return done;
}

/// Adds the block, whose numbers are read again only for subnormals, to `counts`.
void flush(const float* values, std::size_t count, const OrderedEdges& edges, const BlockCounts& block,
           HistogramCounts& counts) {
  add_bins(block.sums, block.extremes, edges, counts);
  add_extremes(block.extremes, counts);
  if (block.sums[plain] + block.sums[past_first] + block.sums[past_both] == 0) return;
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
  for (std::size_t start = 0; start < count; start += numbers_per_block) {
    const std::size_t here = count - start < numbers_per_block ? count - start : numbers_per_block;
    const float* const from = values + start;
    BlockCounts block;
    const std::size_t done = pays_in_pairs(here, edges) ? count_in_pairs(from, here, edges, block) : 0;
    if (done < here) count_one_by_one(from + done, here - done, edges, block);
    flush(from, here, edges, block, counts);
  }
}

}  // namespace halfscope
