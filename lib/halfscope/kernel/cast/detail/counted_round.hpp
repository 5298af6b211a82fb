// Rounding and counting in one pass over an array on the device; on the CPU stats/cast_counts does it tile by
// tile with the kernels for either.
#pragma once

#include <span>

#include <halfscope/core/random.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/kernel/cast/cast_counters.hpp>
#include <halfscope/kernel/histogram/binned_histogram.hpp>
#include <halfscope/kernel/histogram/histogram.hpp>

namespace halfscope::cuda {

/// Counters on the device to which the functions below add, zero before the first of them: several arrays may
/// be counted into the same. A histogram's are the bins of kernel/histogram/binned_histogram.hpp;
/// a cast's are for `add_counters` to read.
inline constexpr std::size_t cast_counter_bins = 6;

/// Adds `values` to `counters` (binned::size) and rounds them in place; an identity leaves even NaNs as
/// they are. Throws InvalidArgument unless `quantizer` is one or rounds to nearest even.
void round_with_histogram(std::span<float> values, const Quantizer& quantizer, const BinadeEdges& edges,
                          std::span<std::int64_t> counters);

/// Adds `values` to `counters` (cast_counter_bins) by the limits of their cast and rounds them in place, as
/// above. Throws InvalidArgument where the rounding is not symmetric.
void round_with_counters(std::span<float> values, const Quantizer& quantizer, const CastLimits& limits,
                         std::span<std::int64_t> counters);

/// Rounds `values` in place as `round` does and adds what became of each to `counters` (cast_counter_bins):
/// for roundings to which a magnitude has no limits, such as stochastic ones. Throws InvalidArgument where
/// the rounding is symmetric.
void round_and_compare(std::span<float> values, const Quantizer& quantizer, const RandomStream& stream,
                       std::span<std::int64_t> counters);

/// Adds |updates[i]| / |weights[i]| of the elements in which neither is zero to `counts`.
void ratio_histogram(std::span<const float> weights, std::span<const float> updates, const BinadeEdges& edges,
                     HistogramCounts& counts);

/// Adds the `bins` of a cast that have come to the host.
void add_counters(std::span<const std::int64_t> bins, CastCounters& counters);

}  // namespace halfscope::cuda
