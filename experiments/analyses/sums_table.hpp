// Sums against exact ones, as tables of length and accumulation model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/results/analysis_result.hpp"

namespace halfscope {

/// Sums of one kind and length under one accumulation model, against the exact ones.
struct AccumulationRow {
  std::string terms;  ///< the terms of the sum, in words
  std::string model;
  std::int64_t count = 0;                  ///< terms of each sum, K
  std::optional<double> relative_error{};  ///< median over the sums that stayed finite; empty where none did
  double overflowed = 0;                   ///< share of the sums
  double stagnated = 0;                    ///< share of the adds (of a tensor core: of its steps)
};

/// A table per kind of terms: a row per model, a column per length.
[[nodiscard]] AnalysisResult accumulation_finding(const std::vector<AccumulationRow>& rows);

/// A value at a row and a column of several tables.
struct PivotCell {
  std::string table;             ///< heading of its first column
  std::vector<std::string> row;  ///< cells that open its row
  std::string column, text;
};

/// Tables of `cells`, in their order: a column for each of a table's columns, a row for each of its rows,
/// behind as many cells as open it; `openings` head those but the first.
[[nodiscard]] std::vector<Section> pivoted(const std::vector<PivotCell>& cells,
                                           const std::vector<std::string>& openings = {});

}  // namespace halfscope
