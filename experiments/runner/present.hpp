// The arms of an experiment side by side, as the table of `halfscope report`.
#pragma once

#include <string>

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// The table that `report` prints: a line per arm, predicted and counted underflow, then paper and verdict.
[[nodiscard]] std::string to_table(const Experiment& experiment, const ExperimentSummary& summary);

}  // namespace halfscope
