// A request as the runs that it asks for.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "experiments/definition/experiment.hpp"
#include "sim/data/dataset.hpp"
#include "sim/train/run_folder.hpp"

namespace halfscope {

/// One of `count` shares of the runs, numbered from 1.
struct Shard {
  std::int64_t index = 1, count = 1;

  [[nodiscard]] bool is_whole() const { return count == 1; }
};

/// The runs of an experiment that `halfscope run` asks for.
struct RunRequest {
  std::vector<std::string> arms{};        ///< empty: all
  std::int64_t seeds = 0;                 ///< 0: the default, three, or one with `quick`
  std::vector<std::int64_t> seed_list{};  ///< in place of `seeds`
  std::filesystem::path out = "results";
  Settings settings{};             ///< --set, in order
  std::filesystem::path config{};  ///< empty, a config.json of an earlier run, or TOML
  RunSize size = RunSize::small;
  Shard shard{};                ///< share of the runs in the order of `settled_runs`
  std::int64_t most_seeds = 0;  ///< above 0: seeds are added until the claims are decided, up to so many
  bool quick = false;
  bool resume = false;
};

/// No two that are trained together have one name.
struct RequestedExperiment {
  Experiment experiment;
  RunRequest request;
  /// With arms of earlier requests, which its experiment.toml keeps; empty for one that is built in.
  std::optional<Experiment> with_earlier_arms{};

  /// Whose arms its table has.
  [[nodiscard]] const Experiment& shown() const {
    return with_earlier_arms ? *with_earlier_arms : experiment;
  }
  [[nodiscard]] std::filesystem::path folder() const { return request.out / experiment.name; }
};

struct PlannedRun {
  RunSettings settings;
  RunFolder folder;
  /// Several runs have the same one, and read it at the same time; null where the run is done already.
  std::shared_ptr<const Dataset> dataset;

  [[nodiscard]] bool is_done() const { return dataset == nullptr; }
};

/// The seeds that a request without a config asks for.
[[nodiscard]] std::vector<std::int64_t> requested_seeds(const RunRequest& request);

/// Every arm and seed that `request` asks for, seed by seed, without data sets; before them the arms that
/// those start or learn from (start_from or teacher = arm:NAME), asked for or not. Throws InvalidArgument for
/// names and values that cannot be right. Nothing is written, and no folder is looked at.
[[nodiscard]] std::vector<PlannedRun> settled_runs(const Experiment& experiment, const RunRequest& request);

/// Each request's share of them, one experiment after the other, with open data sets; runs that are done have
/// none. Throws InvalidArgument where a run cannot be right: its names or values, what does not fit its data
/// set, results of other settings, results that are not done while `resume` is not set. Nothing is written.
[[nodiscard]] std::vector<PlannedRun> plan_runs(const std::vector<RequestedExperiment>& requested);

/// Whether runs of more than one experiment are among them.
[[nodiscard]] bool are_of_several_experiments(const std::vector<PlannedRun>& runs);

}  // namespace halfscope
