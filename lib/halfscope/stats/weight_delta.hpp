// Change of a model's weights over a step, from copies before and after it.
#pragma once

#include <span>

#include <halfscope/stats/exponent_histogram.hpp>
#include <halfscope/stats/tracker.hpp>

namespace halfscope {

/// Updates of a step that weights of a format would lose, and |dw| / |w| of the elements in which neither is
/// zero.
struct WeightDelta {
  UpdateCounters counters;
  ExponentHistogram ratios;
};

/// The updates dw are `after` - `before`, rounded to FP32: as `count_lost_updates` and `update_ratios` count
/// these for `format`, to the bit, in one pass and in as many threads as there are. In CPU memory. Throws
/// InvalidArgument where the two differ in size.
[[nodiscard]] WeightDelta count_weight_delta(std::span<const float> before, std::span<const float> after,
                                             const FloatFormat& format = fp16);

}  // namespace halfscope
