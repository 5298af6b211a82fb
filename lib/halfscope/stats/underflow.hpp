// The gradient_underflow tracker: how many gradients a cast flushes to zero, makes subnormal or overflows.
#pragma once

#include <memory>

#include <halfscope/stats/tracker.hpp>

namespace halfscope {

/// For every cast of an activation gradient or a weight gradient: TensorCounters, and the histogram of the
/// values before the cast, which carry the loss scale. A cast to FP32 is counted as if it were to FP16, so
/// that a run in FP32 tells what FP16 would have done.
[[nodiscard]] std::unique_ptr<Tracker> make_gradient_underflow();

/// The counters of one cast; see TensorCounters.
[[nodiscard]] TensorCounters count_underflow(const CastEvent& event, const ExponentHistogram& before);

}  // namespace halfscope
