// The arms of an experiment side by side, as the table of `halfscope report`.
#pragma once

#include <string>

#include "experiments/results/summary.hpp"
#include "experiments/table/text_width.hpp"

namespace halfscope {

struct TextStyle {
  std::size_t width = any_width;  ///< columns of the terminal
  std::string sort_by{};          ///< key of a column of the arms; empty: the experiment's order
};

/// "7 of 12 runs: 2 running, 5 not begun".
[[nodiscard]] std::string missing_runs(const ExperimentSummary& summary);

/// The table that `report` prints: a line per arm, predicted and counted underflow, then paper and verdict.
[[nodiscard]] std::string to_table(const Experiment& experiment, const ExperimentSummary& summary,
                                   const TextStyle& style = {});

}  // namespace halfscope
