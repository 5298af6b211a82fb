// Runs of an arm as they lie on the disk: finished ones with their records, and those that are not done.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/results/finished_run.hpp"
#include "experiments/results/packed_runs.hpp"
#include "experiments/results/summary.hpp"

namespace halfscope {

struct ArmRuns {
  std::vector<FinishedRun> finished;      ///< in the order of their seeds
  std::vector<UnfinishedRun> unfinished;  ///< likewise
};

/// Folders called seed<k> in an arm's folder with k, ascending; others are no runs.
[[nodiscard]] std::vector<std::pair<std::int64_t, std::filesystem::path>> run_folders(
    const std::filesystem::path& arm);

/// The first line of a run's status: DONE, RUNNING, STOPPED or FAILED and why; "no status" without one.
[[nodiscard]] std::string run_status(const std::filesystem::path& run);

/// The runs of an experiment, which lie in folders DIR/<arm>/seed<k>, or packed in one file as they are
/// recorded.
class RunRecords {
 public:
  /// Throws InvalidArgument, with file and line, for a packed file that is malformed.
  explicit RunRecords(std::filesystem::path folder);

  /// Throws InvalidArgument, with the file, for a record that is malformed or of another format, arm or seed.
  [[nodiscard]] ArmRuns of_arm(const std::string& arm) const;
  /// The seeds of an arm's runs, ascending.
  [[nodiscard]] std::vector<std::int64_t> seeds(const std::string& arm) const;
  /// Counters of a run's first step: a record with step and tensors; null where it has none.
  [[nodiscard]] Json first_counters(const std::string& arm, std::int64_t seed) const;
  /// Hands over the records of the first observed step's histograms, in their order.
  void each_first_histogram(const std::string& arm, std::int64_t seed,
                            const std::function<void(const Json& record)>& take) const;
  /// Hands over the records of a run's histograms, in their order, until `take` ends it: all of a folder,
  /// those of the first and the last observed step of packed runs, none where none were kept.
  void each_histogram(const std::string& arm, std::int64_t seed,
                      const std::function<Reading(const Json& record)>& take) const;

 private:
  [[nodiscard]] std::filesystem::path run_folder(const std::string& arm, std::int64_t seed) const;

  std::filesystem::path folder_;
  std::optional<PackedRuns> packed_;  ///< empty: folders
};

}  // namespace halfscope
