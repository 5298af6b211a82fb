// Puts the arms of an experiment side by side, from the summaries of their runs.
#pragma once

#include <filesystem>

#include <halfscope/io/json_lines.hpp>

#include "experiments/experiment.hpp"

namespace halfscope {

/// Reads `folder` = DIR/<experiment>. Runs that are not done are left out. Throws RequestError where a file
/// is malformed or of another results format.
[[nodiscard]] ExperimentSummary summarise(const Experiment& experiment, const std::filesystem::path& folder);

/// What `report --json` prints and summary.json holds.
[[nodiscard]] Json to_json(const Experiment& experiment, const ExperimentSummary& summary);

/// The table that `report` prints: arms, metric, interval, divergence, lost updates; then paper and verdict.
[[nodiscard]] std::string to_table(const Experiment& experiment, const ExperimentSummary& summary);

/// Half the width of the two-sided 95 % Student interval of a mean over `values` (two or more).
[[nodiscard]] double confidence_95(const std::vector<double>& values);

}  // namespace halfscope
