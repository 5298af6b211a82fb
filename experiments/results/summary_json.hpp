// The arms of an experiment side by side, as JSON.
#pragma once

#include <halfscope/io/json/json_lines.hpp>

#include "experiments/results/summary.hpp"

namespace halfscope {

/// The object that `report --json` prints and summary.json holds.
[[nodiscard]] Json to_json(const Experiment& experiment, const ExperimentSummary& summary);

}  // namespace halfscope
