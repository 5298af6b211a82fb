// A claim's expectations as a table: differences with their intervals, margins, judgements.
#pragma once

#include <string>
#include <vector>

#include "experiments/results/summary.hpp"
#include "experiments/table/table.hpp"

namespace halfscope {

/// A row per expectation.
[[nodiscard]] Table claim_table(const Experiment& experiment, const ExperimentSummary& summary);

/// "Holds.", "Undecided: 2 of 6 expectations; ...", or why the claim is not judged.
[[nodiscard]] std::string claim_outcome(const Experiment& experiment, const ExperimentSummary& summary);

/// Each once.
[[nodiscard]] std::vector<std::string> margin_reasons(const Experiment& experiment);

}  // namespace halfscope
