// Sums of binades between the boundaries of FP16, corrected by the counts at their edges.
#include <halfscope/stats/what_if.hpp>

#include <algorithm>

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

WhatIf what_if(const ExponentHistogram& histogram, int scale_log2) {
  const FloatFormat& format = histogram.format();
  const FlushEdge flush = flush_edge(format);
  const int below_normal = format.min_exponent() - 1;
  const int largest = format.max_exponent();

  WhatIf result{.scale_log2 = scale_log2, .elements = histogram.elements()};
  // Beyond this no binade changes sides any more; it also keeps the sums below from overflowing.
  const int scale = std::clamp(scale_log2, -1000, 1000);
  for (int exponent = ExponentHistogram::first_exponent; exponent <= ExponentHistogram::last_exponent;
       ++exponent) {
    const BinadeCounts counts = histogram.binade(exponent);
    const int scaled = exponent + scale;
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
  }
  return result;
}

}  // namespace halfscope
