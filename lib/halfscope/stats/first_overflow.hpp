// The first_overflow tracker: which tensor of a step was the first with an infinity or a NaN.
#pragma once

#include <memory>

#include <halfscope/stats/tracker.hpp>

namespace halfscope {

/// Records that are kept of what went by before the first overflow.
inline constexpr std::size_t trace_length = 20;

/// Watches the casts and reductions of steps that overflow, in order of execution, until one has an infinity
/// or a NaN: that is the step's FirstOverflow, the ones before it are its trace.
[[nodiscard]] std::unique_ptr<Tracker> make_first_overflow(const TrackerOptions& options = {});

}  // namespace halfscope
