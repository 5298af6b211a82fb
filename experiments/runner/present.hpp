// Shows the arms of an experiment side by side: as JSON, and as the table of `halfscope report`.
#pragma once

#include <halfscope/io/json/json_lines.hpp>

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// The object that `report --json` prints and summary.json holds.
[[nodiscard]] Json to_json(const Experiment& experiment, const ExperimentSummary& summary);

/// The table that `report` prints: a line per arm, predicted and counted underflow, then paper and verdict.
[[nodiscard]] std::string to_table(const Experiment& experiment, const ExperimentSummary& summary);

}  // namespace halfscope
