// Lays sums out by length and model.
#include "experiments/analyses/sums_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace halfscope {
namespace {

/// "3.1e-04", with the share of the adds that stagnated and of the sums that overflowed where there are any.
std::string cell_text(const AccumulationRow& row) {
  std::string text = !row.relative_error        ? "-"
                     : *row.relative_error == 0 ? "0"
                                                : fmt::format("{:.0e}", *row.relative_error);
  if (row.stagnated >= 0.005) text += fmt::format(" s{:.0f}%", 100 * row.stagnated);
  if (row.overflowed > 0) text += fmt::format(" o{:.0f}%", 100 * row.overflowed);
  return text;
}

Json json_of(const AccumulationRow& row) {
  return {{"terms", row.terms},
          {"model", row.model},
          {"count", row.count},
          {"relative_error", row.relative_error ? Json(*row.relative_error) : Json()},
          {"overflowed", row.overflowed},
          {"stagnated", row.stagnated}};
}

/// The row of `table` that opens with `opening`, made where there is none.
std::vector<Cell>& row_of(Table& table, const std::vector<std::string>& opening) {
  const auto opens = [&](const std::vector<Cell>& row) {
    return std::ranges::equal(opening, std::span(row).first(opening.size()), {}, {}, &Cell::text);
  };
  const auto found = std::ranges::find_if(table.rows, opens);
  if (found != table.rows.end()) return *found;
  std::vector<Cell>& row = table.rows.emplace_back();
  for (const std::string& cell : opening) row.emplace_back(cell);
  return row;
}

}  // namespace

std::vector<Section> pivoted(const std::vector<PivotCell>& cells, const std::vector<std::string>& openings) {
  std::vector<Section> sections;
  for (const PivotCell& cell : cells) {
    if (sections.empty() || sections.back().table.columns.front().title != cell.table) {
      Table& table = sections.emplace_back().table;
      table.columns.push_back({cell.table, cell.table});
      for (const std::string& opening : openings) table.columns.push_back({opening, opening});
    }
    Table& table = sections.back().table;
    if (std::ranges::find(table.columns, cell.column, &Column::title) == table.columns.end())
      table.columns.push_back({cell.column, cell.column});
    row_of(table, cell.row).emplace_back(cell.text);
  }
  return sections;
}

AnalysisResult accumulation_finding(const std::vector<AccumulationRow>& rows) {
  AnalysisResult finding{.key = "accumulation", .values = Json::array()};
  std::vector<PivotCell> cells;
  for (const AccumulationRow& row : rows) {
    finding.values.push_back(json_of(row));
    cells.push_back({row.terms, {row.model}, fmt::format("K={}", row.count), cell_text(row)});
  }
  finding.sections = pivoted(cells);
  finding.sections.front().heading =
      "median error relative to the sum of magnitudes; s: adds that changed nothing, o: sums that overflowed";
  return finding;
}

}  // namespace halfscope
