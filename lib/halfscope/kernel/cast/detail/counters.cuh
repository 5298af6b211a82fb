// Counts of floats by threads of the device; only for kernels.
#pragma once

#include <cstdint>

#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/cast/detail/cast_counters_element.hpp>
#include <halfscope/kernel/detail/launch.cuh>
#include <halfscope/kernel/histogram/binned_histogram.hpp>
#include <halfscope/kernel/histogram/detail/histogram_bins.hpp>

namespace halfscope::cuda {
namespace {

/// Fills the bins of kernel/histogram/binned_histogram.hpp.
struct HistogramCounter {
  OrderedEdges edges;

  HALFSCOPE_HD void operator()(float x, float /*rounded*/, BlockBins to) const {
    const std::uint32_t magnitude = magnitude_bits(x);
    const std::uint32_t field = magnitude >> 23;
    std::uint32_t bin = classes * field, fraction = magnitude & 0x7FFFFFu;
    if (field == 0 && magnitude != 0) {
      const NormalisedSubnormal number = normalised_subnormal(magnitude);
      bin = static_cast<std::uint32_t>(binned::subnormals) + classes * number.binade;
      fraction = number.significand & 0x7FFFFFu;
    }
    to.count(bin + static_cast<std::uint32_t>(fraction_class(static_cast<std::int32_t>(fraction), edges)));
    if (to_bits(x) == sign_bit) to.count(static_cast<std::uint32_t>(binned::negative_zeros));
  }
  HALFSCOPE_HD void finish(BlockBins) const {}
};

enum CastBin : std::uint32_t { zeros, nonfinite, flushed, subnormal, overflow, cast_bins };

/// The magnitude by which a cast is counted: see CountsByLimit.
enum class Decisive { exact, rounded };

/// Counts for itself and adds to the bins at its end: most elements go into one of two of them.
template <Decisive decisive>
struct CastCounter {
  CastLimits limits;
  CountsByLimit own{};

  HALFSCOPE_HD void operator()(float x, float rounded, BlockBins) {
    own.count(magnitude_bits(x), magnitude_bits(decisive == Decisive::exact ? x : rounded), limits);
  }
  HALFSCOPE_HD void finish(BlockBins to) const {
    const std::uint32_t counts[cast_bins] = {own.zeros, own.nonfinite, own.flushed(), own.subnormal(),
                                             own.overflow};
    for (std::uint32_t bin = 0; bin < cast_bins; ++bin) {
      if (counts[bin] != 0) to.count(bin, counts[bin]);
    }
  }
};

}  // namespace
}  // namespace halfscope::cuda
