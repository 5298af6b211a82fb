// A share of a sweep: every n-th of its runs.
#pragma once

#include <string_view>
#include <vector>

#include "experiments/run/plan.hpp"

namespace halfscope {

/// Reads "2/12": the second of twelve shares. Throws InvalidArgument.
[[nodiscard]] Shard parse_shard(std::string_view text);

/// Runs at the places i with i % count = index - 1.
[[nodiscard]] std::vector<PlannedRun> share_of(const std::vector<PlannedRun>& runs, const Shard& shard);

/// The same, and before them the runs that they start from or learn from, unless those are done.
[[nodiscard]] std::vector<PlannedRun> runs_of_shard(const std::vector<PlannedRun>& runs, const Shard& shard);

}  // namespace halfscope
