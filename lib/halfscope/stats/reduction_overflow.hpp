// The reduction_overflow tracker: reductions whose partial sums overflow or stop growing.
#pragma once

#include <memory>

#include <halfscope/stats/tracker.hpp>

namespace halfscope {

/// Keeps the counters of every reduction as a ReductionRecord.
[[nodiscard]] std::unique_ptr<Tracker> make_reduction_overflow(const TrackerOptions& options = {});

}  // namespace halfscope
