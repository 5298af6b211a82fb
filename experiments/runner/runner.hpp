// Runs the arms of an experiment over its seeds.
#pragma once

#include <filesystem>
#include <vector>

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// The options of `halfscope run`.
struct RunRequest {
  std::vector<std::string> arms{};  ///< empty: all
  std::int64_t seeds = 0;           ///< 0: the default, three, or one with `quick`
  std::filesystem::path out = "results";
  Settings settings{};             ///< --set, in order
  std::filesystem::path config{};  ///< empty, a config.json of an earlier run, or TOML
  RunSize size = RunSize::small;
  bool quick = false;
  bool resume = false;
};

/// Trains every arm and seed of `experiment`, prints progress on stderr, writes
/// DIR/<experiment>/summary.json. Throws InvalidArgument before anything is written where the request is
/// wrong, or where results are there already and `resume` is not set.
void run_experiment(const Experiment& experiment, const RunRequest& request);

}  // namespace halfscope
