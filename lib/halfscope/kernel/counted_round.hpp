// Rounding and counting in one pass over an array on the device; on the CPU stats/cast_counts does it tile by
// tile with the kernels for either.
#pragma once

#include <span>

#include <halfscope/core/random.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/kernel/cast_tally.hpp>
#include <halfscope/kernel/histogram.hpp>

namespace halfscope::cuda {

/// Adds `values` to `counts` and rounds them in place; an identity leaves even NaNs as they are.
void round_with_histogram(std::span<float> values, const Quantizer& quantizer, const BinadeEdges& edges,
                          HistogramCounts& counts);

/// Adds `values` to `tally` by the limits of their cast and rounds them in place, as above.
void round_with_tally(std::span<float> values, const Quantizer& quantizer, const CastLimits& limits,
                      CastTally& tally);

/// Rounds `values` in place as `round` does and counts what became of each: for roundings to which a
/// magnitude has no limits, such as stochastic ones.
void round_and_compare(std::span<float> values, const Quantizer& quantizer, const RandomStream& stream,
                       CastTally& tally);

/// Adds |updates[i]| / |weights[i]| of the elements in which neither is zero to `counts`.
void ratio_histogram(std::span<const float> weights, std::span<const float> updates, const BinadeEdges& edges,
                     HistogramCounts& counts);

}  // namespace halfscope::cuda
