// Runs of an arm as they lie on the disk: finished ones with their records, and those that are not done.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <halfscope/io/json/json_lines.hpp>

#include "experiments/runner/experiment.hpp"

namespace halfscope {

struct FinishedRun {
  std::int64_t seed = 0;
  Json summary;  ///< its keys have the types that a run writes
  Json config;   ///< with current names; null where the folder has no config.json
};

struct ArmRuns {
  std::vector<FinishedRun> finished;      ///< in the order of their seeds
  std::vector<UnfinishedRun> unfinished;  ///< likewise
};

/// Folders called seed<k> in an arm's folder with k, ascending; others are no runs.
[[nodiscard]] std::vector<std::pair<std::int64_t, std::filesystem::path>> run_folders(
    const std::filesystem::path& arm);

/// The first line of a run's status: DONE, RUNNING, STOPPED or FAILED and why; "no status" without one.
[[nodiscard]] std::string run_status(const std::filesystem::path& run);

/// The runs in `folder`/<arm>. Throws InvalidArgument, with
/// the file, for a record that is malformed or of another format, arm or seed.
[[nodiscard]] ArmRuns read_runs(const std::filesystem::path& folder, const std::string& arm);

}  // namespace halfscope
