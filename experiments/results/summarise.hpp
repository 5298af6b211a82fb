// Results of an experiment's runs, arm by arm.
#pragma once

#include <filesystem>

#include "experiments/results/run_records.hpp"
#include "experiments/results/summary.hpp"

namespace halfscope {

/// Means and intervals over the seeds of the runs in `folder` = DIR/<experiment> that are done, and the runs
/// that are not; without findings. Throws InvalidArgument, with the file, for a malformed record.
[[nodiscard]] ExperimentSummary summarise(const Experiment& experiment, const std::filesystem::path& folder);

}  // namespace halfscope
