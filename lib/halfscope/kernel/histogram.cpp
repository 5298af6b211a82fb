// The loops of the exponent histogram, compiled once per instruction set.
#include <halfscope/kernel/histogram.hpp>

#include <cstring>

#include <halfscope/format/bits.hpp>

// Nothing here may be emitted out of line under a name that other translation units share: everything is in
// an unnamed namespace or always inlined.
namespace halfscope {
namespace {

/// A number's bin is its exponent field times 4 plus its class.
enum FractionClass : std::uint32_t { plain, pow2, ts_only, top_and_ts, classes };
constexpr std::size_t bins = 256 * classes;

/// As many private tables as numbers are counted at a time, so that no increment waits for the one before.
constexpr std::size_t tables = 8;
constexpr std::size_t tile = 1024;
/// Numbers that the 16-bit counters of the tables can take in before they must be emptied.
constexpr std::size_t numbers_per_flush = tile * 256;
static_assert(numbers_per_flush / tables < 65536);

struct Tables {
  alignas(64) std::uint16_t counts[tables][bins] = {};
  std::uint32_t negative_zeros = 0;
  std::int32_t max_finite = 0;
  std::int32_t first_field = 255, last_field = 0;  // exponent fields that hold anything
};

/// What only tiles with zeros, infinities or NaNs need a second look for.
void note_extremes(const float* values, std::size_t count, std::int32_t smallest, std::int32_t largest,
                   Tables& t) {
  t.first_field = t.first_field < smallest >> 23 ? t.first_field : smallest >> 23;
  t.last_field = t.last_field > largest >> 23 ? t.last_field : largest >> 23;
  if (smallest == 0) {
    std::uint32_t negative_zeros = 0;
#pragma omp simd reduction(+ : negative_zeros)
    for (std::size_t i = 0; i < count; ++i) negative_zeros += to_bits(values[i]) == sign_bit ? 1u : 0u;
    t.negative_zeros += negative_zeros;
  }
  constexpr auto infinity = static_cast<std::int32_t>(infinity_bits);
  if (largest >= infinity) {
    largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto magnitude = static_cast<std::int32_t>(to_bits(values[i]) & ~sign_bit);
      if (magnitude < infinity && magnitude > largest) largest = magnitude;
    }
  }
  t.max_finite = t.max_finite > largest ? t.max_finite : largest;
}

/// The bins of up to `tile` numbers. Signed arithmetic, since SSE2 and AVX2 compare signed integers only.
void find_bins(const float* values, std::size_t count, std::uint16_t* out, Tables& t) {
  std::int32_t smallest = 0x7FFFFFFF, largest = 0;
#pragma omp simd reduction(max : largest) reduction(min : smallest)
  for (std::size_t i = 0; i < count; ++i) {
    const auto magnitude = static_cast<std::int32_t>(to_bits(values[i]) & ~sign_bit);
    const std::int32_t fraction = magnitude & 0x7FFFFF;
    // 1 where the fraction is 0; 1 where it is at least 0x7FF000, and 2 more from 0x7FE000 on.
    const std::int32_t fraction_class =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(fraction - 1) >> 31) +
        ((fraction + 0x1000) >> 23) + ((fraction + 0x2000) >> 23 << 1);
    out[i] = static_cast<std::uint16_t>(((magnitude >> 23) << 2) + fraction_class);
    smallest = smallest < magnitude ? smallest : magnitude;
    largest = largest > magnitude ? largest : magnitude;
  }
  note_extremes(values, count, smallest, largest, t);
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

void add_to_binade(BinadeCounts& binade, std::size_t fraction_class, std::int64_t count) {
  binade.all += count;
  if (fraction_class == pow2) binade.pow2 += count;
  if (fraction_class == top_and_ts) binade.top += count;
  if (fraction_class >= ts_only) binade.ts += count;
}

/// Adds FP32 subnormals, which share one exponent field, to their true binades.
void add_subnormals(const float* values, std::size_t count, BinadeCounts* binades) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude = magnitude_bits(values[i]);
    if (magnitude == 0 || magnitude >= (1u << 23)) continue;
    const int leading_zeros = __builtin_clz(magnitude);  // 9 for the largest subnormals, 31 for the smallest
    const std::uint32_t fraction = (magnitude << (leading_zeros - 8)) & 0x7FFFFFu;
    const std::size_t fraction_class = fraction == 0          ? pow2
                                       : fraction >= 0x7FF000 ? top_and_ts
                                       : fraction >= 0x7FE000 ? ts_only
                                                              : plain;
    add_to_binade(binades[31 - leading_zeros], fraction_class, 1);
  }
}

/// Empties the tables into `counts`; `values` are the numbers that they hold, read again only for subnormals.
/// Only the exponents that occur are looked at: small arrays would spend most of their time here.
void flush(const float* values, std::size_t count, const Tables& t, HistogramCounts& counts) {
  BinadeCounts* const binades = counts.binades.data();
  for (std::int32_t field = t.first_field; field <= t.last_field; ++field) {
    std::int64_t sums[classes] = {};
    for (const auto& table : t.counts) {
      for (std::size_t c = 0; c < classes; ++c)
        sums[c] += table[classes * static_cast<std::size_t>(field) + c];
    }
    if (field == 0) {
      counts.zeros += sums[pow2];
      if (sums[plain] + sums[ts_only] + sums[top_and_ts] != 0) add_subnormals(values, count, binades);
    } else if (field == 255) {
      counts.infinities += sums[pow2];
      counts.nans += sums[plain] + sums[ts_only] + sums[top_and_ts];
    } else {
      for (std::size_t c = 0; c < classes; ++c)
        add_to_binade(binades[field - 127 - lowest_binade], c, sums[c]);
    }
  }
  counts.negative_zeros += t.negative_zeros;
  const float max_abs = from_bits(static_cast<std::uint32_t>(t.max_finite));
  counts.max_abs = counts.max_abs > max_abs ? counts.max_abs : max_abs;
}

}  // namespace

template <>
void histogram_isa<target_isa>(const float* values, std::size_t count, HistogramCounts& counts) {
  for (std::size_t start = 0; start < count; start += numbers_per_flush) {
    const std::size_t here = count - start < numbers_per_flush ? count - start : numbers_per_flush;
    Tables t;
    std::uint16_t bin[tile];
    for (std::size_t i = 0; i < here; i += tile) {
      const std::size_t numbers = here - i < tile ? here - i : tile;
      find_bins(values + start + i, numbers, bin, t);
      count_bins(bin, numbers, t);
    }
    flush(values + start, here, t, counts);
  }
}

}  // namespace halfscope
