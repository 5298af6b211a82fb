// Runs the arms of experiments over their seeds.
#pragma once

#include <string>
#include <vector>

#include "experiments/definition/experiment.hpp"
#include "experiments/results/summarise.hpp"
#include "experiments/run/plan.hpp"

namespace halfscope {

struct Concurrency {
  int jobs = 1;     ///< runs at a time
  int threads = 0;  ///< threads of each run; 0: the machine's, divided by the runs at a time
};

struct RunsOutcome {
  std::vector<ExperimentSummary> summaries;  ///< by experiment: of all runs in its folder that are done
  std::vector<std::string> failures;         ///< a line for each that failed
};

/// Reads the results in DIR/<experiment>.
using Summarise = ExperimentSummary (*)(const Experiment& experiment, const std::filesystem::path& folder);

/// Trains every arm and seed that is requested, of all experiments from one queue, prints progress on stderr,
/// writes what `summarise_results` reads to DIR/<experiment>/summary.json where any run is done. A run that
/// fails does not stop the others. Throws InvalidArgument before anything is written where a request is
/// wrong, where a run there has other settings, or is not done and `resume` is not set.
[[nodiscard]] RunsOutcome run_experiments(const std::vector<RequestedExperiment>& requested,
                                          const Concurrency& concurrency = {},
                                          Summarise summarise_results = summarise);

}  // namespace halfscope
