// A table of the paper's with our results beside it, row by row.
#pragma once

#include <halfscope/io/json/json_lines.hpp>

#include "experiments/runner/experiment.hpp"
#include "experiments/table/table.hpp"

namespace halfscope {

/// A row per entry of `experiment.published`: the means of both arms, how far they lie apart, the spread of
/// the baseline's seeds, then what the paper reports.
[[nodiscard]] Table published_table(const Experiment& experiment, const ExperimentSummary& summary);

/// The same as a list of {row, baseline, arm, spread, paper_baseline, paper_arm}; null for what is not known.
[[nodiscard]] Json published_json(const Experiment& experiment, const ExperimentSummary& summary);

}  // namespace halfscope
