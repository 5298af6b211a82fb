// Files the counts of bins under the binades they belong to.
#include <halfscope/kernel/histogram/binned_histogram.hpp>

#include <fmt/format.h>

#include <halfscope/core/error.hpp>
#include <halfscope/kernel/histogram/detail/histogram_bins.hpp>

namespace halfscope {

static_assert(binned::classes == classes && binned::subnormals == bins);

void add_bins_to(HistogramCounts& counts, std::span<const std::int64_t> found, const BinadeEdges& edges) {
  if (found.size() != binned::size)
    throw InvalidArgument(
        fmt::format("histogram bins: {} numbers; {} are expected", found.size(), binned::size));
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

}  // namespace halfscope
