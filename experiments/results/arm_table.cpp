// Lays arms out in rows.
#include "experiments/results/arm_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "experiments/results/arm_columns.hpp"

namespace halfscope {
namespace {

/// A column of the table, and what an arm has in it.
struct TableColumn {
  Column column;
  std::function<Cell(const ArmSummary&)> cell;
};

Cell number_cell(const std::optional<double>& value, int digits) {
  return value ? Cell(fmt::format("{:.{}f}", *value, digits), *value) : Cell("-", std::monostate{});
}

Cell interval_cell(const ArmSummary& arm, int digits) {
  return arm.low && arm.high ? Cell(fmt::format("{:.{}f} .. {:.{}f}", *arm.low, digits, *arm.high, digits))
                             : Cell("-");
}

Cell diverged_cell(const ArmSummary& arm) {
  return {arm.diverged == 0 ? "-" : fmt::format("{} of {}", arm.diverged, arm.values.size()), arm.diverged};
}

bool is_for_people(TableFormat format) {
  return format != TableFormat::csv && format != TableFormat::json;
}

/// The metric's mean and interval; for programs the ends of the interval.
void add_metric(std::vector<TableColumn>& columns, const ReportedMetric& metric, TableFormat format) {
  const int digits = metric.digits;
  const std::string title = metric.unit.empty() ? metric.name : metric.name + " " + metric.unit;
  const auto add = [&](const char* key, const std::string& heading, std::optional<double> ArmSummary::*value,
                       int left_out) {
    columns.push_back(
        {{key, heading, left_out}, [=](const ArmSummary& arm) { return number_cell(arm.*value, digits); }});
  };
  add("mean", title, &ArmSummary::mean, 0);
  if (is_for_people(format)) {
    columns.push_back({{"interval", "95 % interval", 4},
                       [=](const ArmSummary& arm) { return interval_cell(arm, digits); }});
    return;
  }
  add("low", "low", &ArmSummary::low, 4);
  add("high", "high", &ArmSummary::high, 4);
}

bool is_shown(const ArmColumn& column, std::size_t place, const Experiment& experiment,
              const ExperimentSummary& summary) {
  const bool known = std::ranges::any_of(
      summary.arms, [&](const ArmSummary& arm) { return arm.columns[place].has_value(); });
  switch (column.in_table) {
    case InTable::never:
      return false;
    case InTable::always:
      return true;
    case InTable::where_known:
      return known;
    case InTable::with_scale:
      return experiment.report.scale == Shown::shown;
    case InTable::with_memory:
      return experiment.report.memory == Shown::shown && known;
  }
  return false;
}

Cell measured_cell(const ArmColumn& column, const std::optional<double>& value) {
  if (!value) return {"-", std::monostate{}};
  return {column_text(column, value), *value * column.factor};
}

void add_measured(std::vector<TableColumn>& columns, const Experiment& experiment,
                  const ExperimentSummary& summary) {
  for (std::size_t i = 0; i < arm_columns().size(); ++i) {
    const ArmColumn& measured = arm_columns()[i];
    if (!is_shown(measured, i, experiment, summary)) continue;
    const std::string_view key = measured.table_key.empty() ? measured.key : measured.table_key;
    const Column column{std::string(key), std::string(measured.title), measured.left_out};
    if (measured.written == Written::of_seeds) {
      columns.push_back({column, diverged_cell});
    } else {
      columns.push_back({column, [&measured, i](const ArmSummary& arm) {
                           return measured_cell(measured, arm.columns[i]);
                         }});
    }
  }
}

std::vector<TableColumn> columns_of(const Experiment& experiment, const ExperimentSummary& summary,
                                    TableFormat format) {
  std::vector<TableColumn> columns{
      {{"arm", "arm", 0}, [](const ArmSummary& arm) { return Cell(arm.arm); }},
      {{"seeds", "seeds", 10}, [](const ArmSummary& arm) { return count_cell(std::ssize(arm.values)); }}};
  add_metric(columns, experiment.metric, format);
  add_measured(columns, experiment, summary);
  return columns;
}

/// Rows without a value come last.
std::pair<bool, Cell::Value> rank_of(const Cell& cell) {
  return {std::holds_alternative<std::monostate>(cell.value), cell.value};
}

}  // namespace

Table arm_table(const Experiment& experiment, const ExperimentSummary& summary, TableFormat format) {
  const std::vector<TableColumn> columns = columns_of(experiment, summary, format);
  Table table;
  for (const TableColumn& column : columns) table.columns.push_back(column.column);
  for (const ArmSummary& arm : summary.arms) {
    table.rows.emplace_back();
    for (const TableColumn& column : columns) table.rows.back().push_back(column.cell(arm));
  }
  return table;
}

void sort_rows(Table& table, std::string_view key) {
  const auto column = std::ranges::find(table.columns, key, &Column::key);
  if (column == table.columns.end()) {
    std::vector<std::string_view> keys;
    for (const Column& known : table.columns) keys.push_back(known.key);
    throw InvalidArgument(unknown_name("column", key, keys));
  }
  const auto place = static_cast<std::size_t>(column - table.columns.begin());
  std::ranges::stable_sort(table.rows, {}, [&](const auto& row) { return rank_of(row[place]); });
}

}  // namespace halfscope
