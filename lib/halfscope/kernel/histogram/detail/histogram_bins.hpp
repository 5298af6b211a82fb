// Which bin of a histogram a float belongs to; only for *_simd.cpp, which are compiled once for each
// instruction set, and for the kernels of the device.
#pragma once

#include <cstddef>
#include <cstdint>

#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/histogram/histogram.hpp>

// Unnamed, so that no two instruction sets share what is compiled for one of them.
namespace halfscope {
namespace {

/// A number's bin is its exponent field times 4 plus its class: the edges of a binade, in ascending order,
/// that its fraction reaches.
enum FractionClass : std::uint32_t { plain, pow2, past_first, past_both, classes };
constexpr std::size_t bins = 256 * classes;

/// The edges in ascending order: which one comes first depends on the format.
struct OrderedEdges {
  explicit OrderedEdges(const BinadeEdges& edges)
      : first(static_cast<std::int32_t>(edges.rounds_to_overflow < edges.rounds_to_normal
                                            ? edges.rounds_to_overflow
                                            : edges.rounds_to_normal)),
        second(static_cast<std::int32_t>(edges.rounds_to_overflow < edges.rounds_to_normal
                                             ? edges.rounds_to_normal
                                             : edges.rounds_to_overflow)),
        overflow_class(edges.rounds_to_overflow < edges.rounds_to_normal ? past_first : past_both),
        normal_class(edges.rounds_to_overflow < edges.rounds_to_normal ? past_both : past_first) {}

  std::int32_t first, second;
  std::uint32_t overflow_class, normal_class;  ///< the least class that is past this edge
};

/// 1 where the fraction is 0; 2 from the first edge on, 3 from the second. Carries into bit 23 instead of
/// comparisons, which SSE2 and AVX2 have for signed integers only.
HALFSCOPE_HD std::int32_t fraction_class(std::int32_t fraction, const OrderedEdges& edges) {
  constexpr std::int32_t binade = 1 << 23;
  const auto zero = static_cast<std::int32_t>(static_cast<std::uint32_t>(fraction - 1) >> 31);
  return zero + ((fraction + (binade - edges.first)) >> 23 << 1) +
         ((fraction + (binade - edges.second)) >> 23);
}

/// Numbers that no bin counts, and which of them hold anything.
struct Extremes {
  std::uint32_t negative_zeros = 0;
  std::int32_t max_finite = 0;                     ///< the magnitude's bits
  std::int32_t first_field = 255, last_field = 0;  ///< exponent fields that occur
};

inline void add_to_binade(BinadeCounts& binade, std::uint32_t number_class, std::int64_t count,
                          const OrderedEdges& edges) {
  binade.all += count;
  if (number_class == pow2) binade.at_power_of_two += count;
  if (number_class >= edges.overflow_class) binade.rounds_to_overflow += count;
  if (number_class >= edges.normal_class) binade.rounds_to_normal += count;
}

/// Adds the numbers of each bin to `counts`, looking only at the exponents that occur: small arrays would
/// spend most of their time here. FP32's subnormals, which share the bins of one exponent field, are left to
/// `for_each_subnormal`.
inline void add_bins(const std::int64_t* sums, const Extremes& seen, const OrderedEdges& edges,
                     HistogramCounts& counts) {
  BinadeCounts* const binades = counts.binades.data();
  counts.zeros += sums[pow2];  // exponent field 0, fraction 0
  const std::int32_t first = seen.first_field > 1 ? seen.first_field : 1;
  const std::int32_t last = seen.last_field < 254 ? seen.last_field : 254;
  for (std::int32_t field = first; field <= last; ++field) {
    for (std::uint32_t c = 0; c < classes; ++c) {
      const std::size_t bin = classes * static_cast<std::size_t>(field) + c;
      add_to_binade(binades[field - 127 - lowest_binade], c, sums[bin], edges);
    }
  }
  const std::int64_t* const special = sums + classes * 255;
  counts.infinities += special[pow2];
  counts.nans += special[plain] + special[past_first] + special[past_both];
}

inline void add_extremes(const Extremes& seen, HistogramCounts& counts) {
  counts.negative_zeros += seen.negative_zeros;
  const float max_abs = from_bits(static_cast<std::uint32_t>(seen.max_finite));
  counts.max_abs = counts.max_abs > max_abs ? counts.max_abs : max_abs;
}

/// The true binade [e - lowest_binade] of an FP32 subnormal, all of which share one exponent field, and the
/// 24-bit significand that it has in it.
struct NormalisedSubnormal {
  std::uint32_t binade, significand;
};
HALFSCOPE_HD NormalisedSubnormal normalised_subnormal(std::uint32_t magnitude) {
  const int zeros = leading_zeros(magnitude) - 32;  // 9 for the largest subnormals, 31 for the smallest
  return {static_cast<std::uint32_t>(31 - zeros), magnitude << (zeros - 8)};
}

/// Calls `add(binade, significand, class)` for each FP32 subnormal.
template <typename Add>
void for_each_subnormal(const float* values, std::size_t count, const OrderedEdges& edges, Add&& add) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude = magnitude_bits(values[i]);
    if (magnitude == 0 || magnitude >= (1u << 23)) continue;
    const NormalisedSubnormal number = normalised_subnormal(magnitude);
    const auto fraction = static_cast<std::int32_t>(number.significand & 0x7FFFFFu);
    add(std::size_t{number.binade}, number.significand,
        static_cast<std::uint32_t>(fraction_class(fraction, edges)));
  }
}

}  // namespace
}  // namespace halfscope
