// Runs the arms of an experiment over its seeds.
#pragma once

#include <string>
#include <vector>

#include "experiments/runner/experiment.hpp"
#include "experiments/runner/plan.hpp"

namespace halfscope {

struct ExperimentOutcome {
  ExperimentSummary summary;               ///< of all runs in the folder that are done
  std::vector<std::string> failures = {};  ///< a line for each that failed
};

/// Trains every arm and seed of `experiment`, prints progress on stderr, writes
/// DIR/<experiment>/summary.json if any run is done. A run that fails does not stop the others. Throws
/// InvalidArgument before anything is written where the request is wrong, where a run there has other
/// settings, or is not done and `resume` is not set.
[[nodiscard]] ExperimentOutcome run_experiment(const Experiment& experiment, const RunRequest& request);

}  // namespace halfscope
