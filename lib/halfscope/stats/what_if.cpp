// Sums of binades between the boundaries of FP16, corrected by the counts at their edges.
#include <halfscope/stats/what_if.hpp>

#include <algorithm>

#include <halfscope/format/catalogue.hpp>

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

WhatIf what_if(const ExponentHistogram& histogram, int scale_log2) {
  // Binades of the scaled number: half the smallest number, below the smallest normal number, the largest.
  constexpr int half_smallest = fp16.lowest_exponent() - 1;
  constexpr int below_normal = fp16.min_exponent() - 1;
  constexpr int largest = fp16.max_exponent();

  WhatIf result{.scale_log2 = scale_log2, .elements = histogram.elements()};
  // Beyond this no binade changes sides any more; it also keeps the sums below from overflowing.
  const int scale = std::clamp(scale_log2, -1000, 1000);
  for (int exponent = ExponentHistogram::first_exponent; exponent <= ExponentHistogram::last_exponent;
       ++exponent) {
    const BinadeCounts counts = histogram.binade(exponent);
    const int scaled = exponent + scale;
    result.nonzero += counts.all;
    if (scaled < half_smallest) result.flushed += counts.all;
    if (scaled == half_smallest) result.flushed += counts.pow2;
    if (scaled >= half_smallest && scaled <= below_normal) result.subnormal += counts.all;
    if (scaled == half_smallest) result.subnormal -= counts.pow2;
    if (scaled == below_normal) result.subnormal -= counts.ts;
    if (scaled > largest) result.overflow += counts.all;
    if (scaled == largest) result.overflow += counts.top;
  }
  return result;
}

}  // namespace halfscope
