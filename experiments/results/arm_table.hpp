// The arms of an experiment as a table, a row per arm.
#pragma once

#include "experiments/results/summary.hpp"
#include "experiments/table/table.hpp"

namespace halfscope {

/// A row per arm. For people the 95 % interval is one column; programs, which `format` names, get its ends,
/// and numbers with all their digits.
[[nodiscard]] Table arm_table(const Experiment& experiment, const ExperimentSummary& summary,
                              TableFormat format);

/// Sorts the rows by the column `key`, numbers upwards, with rows that have none at the end. Throws
/// InvalidArgument with the nearest key.
void sort_rows(Table& table, std::string_view key);

}  // namespace halfscope
