// Runs of an experiment in one file, as experiments/recorded keeps them: a line with the settings that all
// share, then a line per run.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "experiments/results/finished_run.hpp"
#include "experiments/results/records_file.hpp"

namespace halfscope {

struct PackedRun {
  FinishedRun run;
  Json first_step;  ///< counters of the first observed step; null where they were not kept
};

/// Runs by arm, in the order of their seeds.
using PackedRuns = std::map<std::string, std::vector<PackedRun>>;

/// Whether `folder` holds packed runs: runs.jsonl.
[[nodiscard]] bool has_packed_runs(const std::filesystem::path& folder);

/// Throws InvalidArgument, with file and line, for a line that is malformed, and for two runs of one arm and
/// seed.
[[nodiscard]] PackedRuns read_packed_runs(const std::filesystem::path& folder);

/// Hands over the records of `folder`/histograms.jsonl.gz of one run, in their order, until `take` ends
/// it; none where there is no such file.
void each_packed_histogram(const std::filesystem::path& folder, const std::string& arm, std::int64_t seed,
                           const std::function<Reading(const Json& record)>& take);

}  // namespace halfscope
