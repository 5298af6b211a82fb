// Files the counts of bins under the binades they belong to, and counts of binades in bins.
#include <halfscope/kernel/histogram/binned_histogram.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/core/error.hpp>
#include <halfscope/kernel/histogram/detail/histogram_bins.hpp>

namespace halfscope {

static_assert(binned::classes == classes && binned::subnormals == bins);

namespace {

void check_size(std::size_t size) {
  if (size == binned::size) return;
  throw InvalidArgument(fmt::format("histogram bins: {} numbers; {} are expected", size, binned::size));
}

}  // namespace

void add_bins_to(HistogramCounts& counts, std::span<const std::int64_t> found, const BinadeEdges& edges) {
  check_size(found.size());
  const OrderedEdges ordered(edges);
  const Extremes everything{.negative_zeros = 0,
                            .max_finite = static_cast<std::int32_t>(found[binned::max_abs]),
                            .first_field = 0,
                            .last_field = 255};
  add_bins(found.data(), everything, ordered, counts);
  add_extremes(everything, counts);
  counts.negative_zeros += found[binned::negative_zeros];
  for (std::size_t i = 0; i < classes * binned::subnormal_binades; ++i) {
    add_to_binade(counts.binades.at(i / classes), static_cast<std::uint32_t>(i % classes),
                  found[binned::subnormals + i], ordered);
  }
}

void add_to_bins(std::span<std::int64_t> to, const HistogramCounts& counts, const BinadeEdges& edges) {
  check_size(to.size());
  const OrderedEdges ordered(edges);
  for (int exponent = lowest_binade; exponent <= highest_binade; ++exponent) {
    const BinadeCounts& binade = counts.binades.at(static_cast<std::size_t>(exponent - lowest_binade));
    const bool overflow_is_first = ordered.overflow_class == past_first;
    const std::int64_t first = overflow_is_first ? binade.rounds_to_overflow : binade.rounds_to_normal;
    const std::int64_t both = overflow_is_first ? binade.rounds_to_normal : binade.rounds_to_overflow;
    const int row = exponent < -126 ? 256 + exponent - lowest_binade : exponent + 127;
    std::int64_t* const numbers = to.data() + classes * static_cast<std::size_t>(row);
    numbers[plain] += binade.all - binade.at_power_of_two - first;
    numbers[pow2] += binade.at_power_of_two;
    numbers[past_first] += first - both;
    numbers[past_both] += both;
  }
  to[pow2] += counts.zeros;  // exponent field 0, fraction 0
  to[classes * 255 + pow2] += counts.infinities;
  to[classes * 255 + plain] += counts.nans;
  to[binned::negative_zeros] += counts.negative_zeros;
  to[binned::max_abs] = std::max<std::int64_t>(to[binned::max_abs], to_bits(counts.max_abs));
}

}  // namespace halfscope
