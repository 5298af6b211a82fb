// The loops of the exponent histogram, compiled once per instruction set.
#include <halfscope/kernel/histogram.hpp>

#include <cstring>

#include <halfscope/kernel/histogram_bins.hpp>

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
  std::uint32_t negative_zeros = 0;
  std::uint32_t max_finite = 0;
};

/// The bins of up to `tile` numbers.
void find_bins(const float* values, std::size_t count, const OrderedEdges& edges, std::uint16_t* out,
               Tables& t) {
  std::uint32_t negative_zeros = 0;
  std::int32_t max_finite = 0;
#pragma omp simd reduction(+ : negative_zeros) reduction(max : max_finite)
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = to_bits(values[i]);
    const auto magnitude = static_cast<std::int32_t>(bits & ~sign_bit);
    const std::int32_t number_class = fraction_class(magnitude & 0x7FFFFF, edges);
    out[i] = static_cast<std::uint16_t>(((magnitude >> 23) << 2) + number_class);
    negative_zeros += bits == sign_bit ? 1u : 0u;
    const std::int32_t finite = magnitude < static_cast<std::int32_t>(infinity_bits) ? magnitude : 0;
    max_finite = max_finite > finite ? max_finite : finite;
  }
  t.negative_zeros += negative_zeros;
  const auto max_here = static_cast<std::uint32_t>(max_finite);
  t.max_finite = t.max_finite > max_here ? t.max_finite : max_here;
}

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
  BinadeCounts* const binades = counts.binades.data();
  std::int64_t sums[bins];
  for (std::size_t bin = 0; bin < bins; ++bin) {
    std::int32_t sum = 0;
    for (std::size_t table = 0; table < tables; ++table) sum += t.counts[table][bin];
    sums[bin] = sum;
  }
  counts.zeros += sums[pow2];  // exponent field 0, fraction 0
  counts.negative_zeros += t.negative_zeros;
  if (sums[plain] + sums[past_first] + sums[past_both] != 0) {
    const auto add = [&](std::size_t binade, std::uint32_t /*significand*/, std::uint32_t number_class) {
      add_to_binade(binades[binade], number_class, 1, edges);
    };
    for_each_subnormal(values, count, edges, add);
  }
  for (std::size_t field = 1; field < 255; ++field) {
    for (std::uint32_t c = 0; c < classes; ++c) {
      add_to_binade(binades[static_cast<int>(field) - 127 - lowest_binade], c, sums[classes * field + c],
                    edges);
    }
  }
  const std::int64_t* const special = sums + classes * 255;
  counts.infinities += special[pow2];
  counts.nans += special[plain] + special[past_first] + special[past_both];
  const float max_abs = from_bits(t.max_finite);
  counts.max_abs = counts.max_abs > max_abs ? counts.max_abs : max_abs;
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
      find_bins(values + start + i, numbers, edges, bin, t);
      count_bins(bin, numbers, t);
    }
    flush(values + start, here, edges, t, counts);
  }
}

}  // namespace halfscope
