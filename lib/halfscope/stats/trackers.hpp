// The trackers that can be asked for by name: one line per tracker.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include <halfscope/stats/cast_statistics.hpp>
#include <halfscope/stats/first_overflow.hpp>
#include <halfscope/stats/lost_updates.hpp>
#include <halfscope/stats/reduction_overflow.hpp>

namespace halfscope {

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
};

}  // namespace halfscope
