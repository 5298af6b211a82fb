// Counts of floats by threads of the device; only for kernels.
#pragma once

#include <cstdint>

#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/cast/cast_counters.hpp>
#include <halfscope/kernel/detail/launch.cuh>
#include <halfscope/kernel/histogram/binned_histogram.hpp>
#include <halfscope/kernel/histogram/detail/histogram_bins.hpp>

namespace halfscope::cuda {
namespace {

HALFSCOPE_HD int leading_zeros(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __clz(static_cast<int>(bits));
#else
  return __builtin_clz(bits);
#endif
}

/// Fills the bins of kernel/binned_histogram.hpp.
struct HistogramCounter {
  OrderedEdges edges;

  HALFSCOPE_HD void operator()(float x, float /*rounded*/, BlockBins to) const {
    const std::uint32_t magnitude = magnitude_bits(x);
    const std::uint32_t field = magnitude >> 23;
    std::uint32_t bin = classes * field, fraction = magnitude & 0x7FFFFFu;
    if (field == 0 && magnitude != 0) {
      const int zeros = leading_zeros(magnitude);
      bin = static_cast<std::uint32_t>(binned::subnormals) + classes * static_cast<std::uint32_t>(31 - zeros);
      fraction = magnitude << (zeros - 8) & 0x7FFFFFu;
    }
    to.count(bin + static_cast<std::uint32_t>(fraction_class(static_cast<std::int32_t>(fraction), edges)));
    if (to_bits(x) == sign_bit) to.count(static_cast<std::uint32_t>(binned::negative_zeros));
  }
  HALFSCOPE_HD void finish(BlockBins) const {}
};

enum CastBin : std::uint32_t { zeros, nonfinite, flushed, subnormal, overflow, cast_bins };

/// Counts for itself and adds to the bins at its end: most elements go into one of two of them.
struct OwnCounts {
  std::uint32_t counts[cast_bins] = {};

  HALFSCOPE_HD void add(CastBin bin, bool counts_here) { counts[bin] += counts_here ? 1u : 0u; }
  HALFSCOPE_HD void finish(BlockBins to) const {
    for (std::uint32_t bin = 0; bin < cast_bins; ++bin) {
      if (counts[bin] != 0) to.count(bin, counts[bin]);
    }
  }
};

struct CastCounterBin {
  CastLimits limits;
  OwnCounts own{};

  HALFSCOPE_HD void operator()(float x, float /*rounded*/, BlockBins) {
    const std::uint32_t magnitude = magnitude_bits(x);
    own.add(zeros, magnitude == 0);
    own.add(nonfinite, magnitude >= infinity_bits);
    own.add(flushed, magnitude != 0 && magnitude < limits.nonzero);
    own.add(subnormal, magnitude >= limits.nonzero && magnitude < limits.normal);
    own.add(overflow, magnitude >= limits.infinite && magnitude < infinity_bits);
  }
  HALFSCOPE_HD void finish(BlockBins to) const { own.finish(to); }
};

struct ComparingCounter {
  std::uint32_t min_normal;
  OwnCounts own{};

  HALFSCOPE_HD void operator()(float x, float after, BlockBins) {
    const std::uint32_t exact = magnitude_bits(x), rounded = magnitude_bits(after);
    own.add(zeros, exact == 0);
    own.add(nonfinite, exact >= infinity_bits);
    own.add(flushed, exact != 0 && rounded == 0);
    own.add(subnormal, rounded != 0 && rounded < min_normal);
    own.add(overflow, exact < infinity_bits && rounded >= infinity_bits);
  }
  HALFSCOPE_HD void finish(BlockBins to) const { own.finish(to); }
};

}  // namespace
}  // namespace halfscope::cuda
