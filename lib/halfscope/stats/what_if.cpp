// Sums of binades between the boundaries of FP16, corrected by the counts at their edges.
#include <halfscope/stats/what_if.hpp>

#include <fmt/format.h>

namespace halfscope {
namespace {

double share(std::int64_t count, std::int64_t total) {
  return total == 0 ? 0.0 : static_cast<double>(count) / static_cast<double>(total);
}

}  // namespace

double WhatIf::of_nonzero(std::int64_t count) const {
  return share(count, nonzero);
}
double WhatIf::of_all(std::int64_t count) const {
  return share(count, elements);
}

FlushEdge flush_edge(const FloatFormat& format) {
  if (format.subnormals == Subnormals::flush_to_zero) return {format.min_exponent() - 1, false};
  return {format.lowest_exponent() - 1, true};
}

WhatIf what_if(const BinadeRange& range, const FloatFormat& format, int scale_log2) {
  const FlushEdge flush = flush_edge(format);
  const int below_normal = format.min_exponent() - 1;
  const int largest = format.max_exponent();

  WhatIf result{.scale_log2 = scale_log2};
  std::int64_t scaled = std::int64_t{range.first_exponent} + scale_log2;
  for (const BinadeCounts& counts : range.binades) {
    const std::int64_t at_edge =
        flush.only_powers ? counts.at_power_of_two : counts.all - counts.rounds_to_normal;
    const std::int64_t flushed = scaled < flush.binade ? counts.all : scaled == flush.binade ? at_edge : 0;
    const std::int64_t below = scaled < below_normal    ? counts.all
                               : scaled == below_normal ? counts.all - counts.rounds_to_normal
                                                        : 0;
    result.nonzero += counts.all;
    result.flushed += flushed;
    result.subnormal += below - flushed;
    if (scaled > largest) result.overflow += counts.all;
    if (scaled == largest) result.overflow += counts.rounds_to_overflow;
    ++scaled;
  }
  result.elements = result.nonzero;
  return result;
}

BinadeRange filled_binades(const ExponentHistogram& histogram) {
  std::span<const BinadeCounts> binades = histogram.counts().binades;
  int first = ExponentHistogram::first_exponent;
  for (; binades.size() > 1 && binades.front().all == 0; ++first) binades = binades.subspan(1);
  while (binades.size() > 1 && binades.back().all == 0) binades = binades.first(binades.size() - 1);
  return {first, binades};
}

WhatIf what_if(const ExponentHistogram& histogram, int scale_log2) {
  const BinadeRange range{ExponentHistogram::first_exponent, histogram.counts().binades};
  WhatIf result = what_if(range, histogram.format(), scale_log2);
  result.elements = histogram.elements();
  return result;
}

std::string share_text(double share) {
  if (share == 0) return "0";
  if (share < 5e-5) return "<0.01 %";
  if (share < 1 && share >= 0.99995) return ">99.99 %";
  return fmt::format("{:.2f} %", 100 * share);
}

}  // namespace halfscope
