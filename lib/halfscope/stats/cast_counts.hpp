// Rounds an array and counts, on the way, what the rounding does to it.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/core/random.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/stats/exponent_histogram.hpp>

namespace halfscope {

/// What a cast met, and the elements that it makes zero, subnormal or infinite (NaN where the format has no
/// infinity). A cast to FP32 is counted as if it were to FP16, so that a run in FP32 tells what FP16 would
/// have done.
struct CastCounts {
  ExponentHistogram before;  ///< of the exact values
  std::int64_t flushed = 0;
  std::int64_t subnormal = 0;
  std::int64_t overflow = 0;
};

/// Rounds `values` in place as `round` does and counts, split over the threads. Integers and a maximum: the
/// counts are the same however the array is split.
[[nodiscard]] CastCounts round_and_count(std::span<float> values, const Quantizer& quantizer,
                                         const RandomStream& stream = {});

}  // namespace halfscope
