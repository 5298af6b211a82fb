// Puts the arms of an experiment side by side, from the summaries of their runs.
#pragma once

#include <filesystem>

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// Reads `folder` = DIR/<experiment>. Runs that are not done are left out. Throws InvalidArgument where a
/// file is malformed or of another results format.
[[nodiscard]] ExperimentSummary summarise(const Experiment& experiment, const std::filesystem::path& folder);

}  // namespace halfscope
