// Losses of all-reduces as text: of an experiment's arms, and a table of means over ranks.
#pragma once

#include <string>
#include <vector>

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// A line per arm with several ranks; empty without any.
[[nodiscard]] std::string all_reduce_lines(const ExperimentSummary& summary, std::size_t width);

/// A table per kind of gradients: a row per order and division, a column per number of ranks.
[[nodiscard]] std::string all_reduce_tables(const std::vector<AllReduceRow>& rows);

}  // namespace halfscope
