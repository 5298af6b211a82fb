// Lays arms out in rows.
#include "experiments/runner/arm_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "experiments/runner/text_table.hpp"

namespace halfscope {
namespace {

/// A column, and what an arm has in it.
struct ArmColumn {
  Column column;
  std::function<Cell(const ArmSummary&)> cell;
};

Cell number_cell(const std::optional<double>& value, int digits) {
  return value ? Cell(fmt::format("{:.{}f}", *value, digits), *value) : Cell("-", std::monostate{});
}

Cell share_cell(const std::optional<double>& share) {
  return share ? Cell(percent(share), *share) : Cell("-", std::monostate{});
}

std::optional<double> scaled(const std::optional<double>& value, double factor) {
  return value ? std::optional(*value * factor) : std::nullopt;
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

void add_metric(std::vector<ArmColumn>& columns, const ReportedMetric& metric, TableFormat format) {
  const int digits = metric.digits;
  const std::string title = metric.unit.empty() ? metric.name : metric.name + " " + metric.unit;
  columns.push_back(
      {{"mean", title, 0}, [=](const ArmSummary& arm) { return number_cell(arm.mean, digits); }});
  if (is_for_people(format)) {
    columns.push_back({{"interval", "95 % interval", 4},
                       [=](const ArmSummary& arm) { return interval_cell(arm, digits); }});
    return;
  }
  columns.push_back({{"low", "low", 4}, [=](const ArmSummary& arm) { return number_cell(arm.low, digits); }});
  columns.push_back(
      {{"high", "high", 4}, [=](const ArmSummary& arm) { return number_cell(arm.high, digits); }});
}

void add_counts(std::vector<ArmColumn>& columns) {
  columns.push_back({{"diverged", "diverged", 2}, diverged_cell});
  columns.push_back(
      {{"skipped", "skipped", 6}, [](const ArmSummary& arm) { return number_cell(arm.skipped, 0); }});
  columns.push_back(
      {{"flushed", "flushed", 1}, [](const ArmSummary& arm) { return share_cell(arm.flushed); }});
  columns.push_back({{"lost_updates", "lost updates", 3},
                     [](const ArmSummary& arm) { return share_cell(arm.lost_updates); }});
  columns.push_back({{"ms_per_step", "ms/step", 7}, [](const ArmSummary& arm) {
                       return number_cell(scaled(arm.seconds_per_step, 1000), 1);
                     }});
}

void add_scale(std::vector<ArmColumn>& columns) {
  columns.push_back({{"last_skipped_step", "last skip", 8},
                     [](const ArmSummary& arm) { return number_cell(arm.last_skipped, 0); }});
  columns.push_back({{"final_scale_log2", "log2 final scale", 5},
                     [](const ArmSummary& arm) { return number_cell(arm.final_scale_log2, 1); }});
  columns.push_back({{"first_at_final_scale", "first at it", 9},
                     [](const ArmSummary& arm) { return number_cell(arm.first_at_final_scale, 0); }});
}

/// Whether a column has something to say.
bool is_known(const ExperimentSummary& summary, std::optional<double> ArmSummary::*value) {
  return std::ranges::any_of(summary.arms, [=](const ArmSummary& arm) { return (arm.*value).has_value(); });
}

std::vector<ArmColumn> columns_of(const Experiment& experiment, const ExperimentSummary& summary,
                                  TableFormat format) {
  std::vector<ArmColumn> columns{
      {{"arm", "arm", 0}, [](const ArmSummary& arm) { return Cell(arm.arm); }},
      {{"seeds", "seeds", 10}, [](const ArmSummary& arm) { return count_cell(std::ssize(arm.values)); }}};
  add_metric(columns, experiment.metric, format);
  if (is_known(summary, &ArmSummary::accuracy)) {
    columns.push_back(
        {{"accuracy", "accuracy %", 12}, [](const ArmSummary& arm) { return number_cell(arm.accuracy, 1); }});
  }
  add_counts(columns);
  if (experiment.scale_columns == ScaleColumns::shown) add_scale(columns);
  if (experiment.memory_column == MemoryColumn::shown && is_known(summary, &ArmSummary::peak_step_bytes)) {
    columns.push_back({{"step_mb", "step MB", 9}, [](const ArmSummary& arm) {
                         return number_cell(scaled(arm.peak_step_bytes, 1e-6), 2);
                       }});
  }
  if (is_known(summary, &ArmSummary::peak_device_bytes)) {
    constexpr double mebibytes = 1.0 / (1 << 20);
    columns.push_back({{"peak_mib", "peak MiB", 11}, [](const ArmSummary& arm) {
                         return number_cell(scaled(arm.peak_device_bytes, mebibytes), 0);
                       }});
  }
  return columns;
}

/// Rows without a value come last.
std::pair<bool, Cell::Value> rank_of(const Cell& cell) {
  return {std::holds_alternative<std::monostate>(cell.value), cell.value};
}

}  // namespace

Table arm_table(const Experiment& experiment, const ExperimentSummary& summary, TableFormat format) {
  const std::vector<ArmColumn> columns = columns_of(experiment, summary, format);
  Table table;
  for (const ArmColumn& column : columns) table.columns.push_back(column.column);
  for (const ArmSummary& arm : summary.arms) {
    table.rows.emplace_back();
    for (const ArmColumn& column : columns) table.rows.back().push_back(column.cell(arm));
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
