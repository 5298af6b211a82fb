// The trackers that can be asked for by name: one line per tracker.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include <halfscope/stats/tracker.hpp>

namespace halfscope {

/// For every cast of a role that `options` names (gradients, unless it says otherwise): TensorCounters; for
/// gradients also the histogram of the values before the cast, which carry the loss scale. See CastCounts.
[[nodiscard]] std::unique_ptr<Tracker> make_cast_statistics(const TrackerOptions& options = {});

/// Records that are kept of what went by before the first overflow.
inline constexpr std::size_t trace_length = 20;

/// Watches the casts and reductions of steps that overflow, in order of execution, until one has an infinity
/// or a NaN: that is the step's FirstOverflow, the ones before it are its trace.
[[nodiscard]] std::unique_ptr<Tracker> make_first_overflow(const TrackerOptions& options = {});

/// Keeps the counters of every reduction as a ReductionRecord.
[[nodiscard]] std::unique_ptr<Tracker> make_reduction_overflow(const TrackerOptions& options = {});

/// For every update: UpdateCounters, and the histogram of |dw/w| as "update_ratio".
[[nodiscard]] std::unique_ptr<Tracker> make_lost_updates(const TrackerOptions& options = {});

/// For every operand of a product that has a format of its own: OperandCounters.
[[nodiscard]] std::unique_ptr<Tracker> make_operand_statistics(const TrackerOptions& options = {});

struct TrackerEntry {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Tracker> (*make)(const TrackerOptions& options);
};

inline constexpr std::array tracker_table{
    TrackerEntry{"first_overflow",
                 "in a step that overflows: which tensor did first, and what came before it",
                 make_first_overflow},
    TrackerEntry{"cast_statistics",
                 "gradients, or other roles, that a cast flushes to zero, makes subnormal or overflows",
                 make_cast_statistics},
    TrackerEntry{"reduction_overflow", "reductions whose partial sums overflow or stagnate",
                 make_reduction_overflow},
    TrackerEntry{"lost_updates", "weight updates too small to change a weight without a master copy",
                 make_lost_updates},
    TrackerEntry{"operand_statistics",
                 "operands of products in formats of their own: elements flushed and clipped, scales",
                 make_operand_statistics},
};

}  // namespace halfscope
