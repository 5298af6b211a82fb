// The cast_statistics tracker: how many gradients a cast flushes to zero, makes subnormal or overflows.
#pragma once

#include <memory>

#include <halfscope/stats/tracker.hpp>

namespace halfscope {

/// For every cast of a role that `options` names (gradients, unless it says otherwise): TensorCounters; for
/// gradients also the histogram of the values before the cast, which carry the loss scale. See CastCounts.
[[nodiscard]] std::unique_ptr<Tracker> make_cast_statistics(const TrackerOptions& options = {});

}  // namespace halfscope
