// Renders summaries.
#include "experiments/runner/present.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "experiments/runner/harm_present.hpp"
#include "experiments/runner/text_table.hpp"
#include "sim/train/run_folder.hpp"

namespace halfscope {
namespace {

Json json_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

Json arm_json(const ArmSummary& arm) {
  Json values = Json::array();
  for (const auto& value : arm.values) values.push_back(json_or_null(value));
  return {{"arm", arm.arm},
          {"seeds", arm.values.size()},
          {"mean", json_or_null(arm.mean)},
          {"low", json_or_null(arm.low)},
          {"high", json_or_null(arm.high)},
          {"diverged", arm.diverged},
          {"diverged_step", arm.diverged_step ? Json(*arm.diverged_step) : Json()},
          {"values", values},
          {"lost_updates", json_or_null(arm.lost_updates)},
          {"flushed", json_or_null(arm.flushed)},
          {"subnormal", json_or_null(arm.subnormal)},
          {"overflow", json_or_null(arm.overflow)},
          {"skipped", json_or_null(arm.skipped)},
          {"last_skipped_step", json_or_null(arm.last_skipped)},
          {"final_scale_log2", json_or_null(arm.final_scale_log2)},
          {"first_at_final_scale", json_or_null(arm.first_at_final_scale)},
          {"overflows", arm.overflows},
          {"seconds_per_step", json_or_null(arm.seconds_per_step)},
          {"peak_device_bytes", json_or_null(arm.peak_device_bytes)}};
}

Json prediction_json(const UnderflowPrediction& entry) {
  return {{"arm", entry.arm},        {"scale", entry.scale},       {"tensor", entry.tensor},
          {"role", entry.role},      {"elements", entry.elements}, {"predicted", entry.predicted},
          {"counted", entry.counted}};
}

std::string cell(const std::optional<double>& value, const std::string& format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
}

/// Whether a column for the device's memory has something to say.
bool knows_memory(const ExperimentSummary& summary) {
  return std::any_of(summary.arms.begin(), summary.arms.end(),
                     [](const ArmSummary& arm) { return arm.peak_device_bytes.has_value(); });
}

std::vector<std::string> arm_row(const Experiment& experiment, const ArmSummary& arm) {
  const ReportedMetric& metric = experiment.metric;
  const auto number = [&](const std::optional<double>& value) {
    return cell(value, fmt::format("{{:.{}f}}", metric.digits));
  };
  const std::size_t seeds = arm.values.size();
  std::vector<std::string> row{
      arm.arm,
      fmt::format("{}", seeds),
      number(arm.mean),
      arm.low ? number(arm.low) + " .. " + number(arm.high) : "-",
      arm.diverged == 0 ? "-" : fmt::format("{} of {}", arm.diverged, seeds),
      cell(arm.skipped, "{:.0f}"),
      percent(arm.flushed),
      percent(arm.lost_updates),
      arm.seconds_per_step ? fmt::format("{:.1f}", 1000 * *arm.seconds_per_step) : "-"};
  if (experiment.scale_columns == ScaleColumns::shown) {
    row.push_back(cell(arm.last_skipped, "{:.0f}"));
    row.push_back(cell(arm.final_scale_log2, "{:.1f}"));
    row.push_back(cell(arm.first_at_final_scale, "{:.0f}"));
  }
  return row;
}

/// Predicted and counted flushed shares of several tensors together.
struct Flushed {
  double predicted = 0, counted = 0, elements = 0;

  void add(const UnderflowPrediction& entry) {
    const auto count = static_cast<double>(entry.elements);
    predicted += entry.predicted * count;
    counted += entry.counted * count;
    elements += count;
  }
  [[nodiscard]] std::string text() const {
    return elements == 0
               ? "-"
               : fmt::format("{:.1f} / {:.1f} %", 100 * predicted / elements, 100 * counted / elements);
  }
};

std::vector<std::string> prediction_row(const ExperimentSummary& summary, const std::string& arm) {
  Flushed nearest, activations, weights;
  for (const UnderflowPrediction& entry : summary.predictions) {
    if (entry.arm != arm) continue;
    if (nearest.elements == 0) nearest.add(entry);
    (entry.role == name_of(Role::weight_gradient) ? weights : activations).add(entry);
  }
  return {arm, nearest.text(), activations.text(), weights.text()};
}

Json accumulation_json(const AccumulationRow& row) {
  return {{"terms", row.terms},           {"model", row.model},
          {"count", row.count},           {"relative_error", json_or_null(row.relative_error)},
          {"overflowed", row.overflowed}, {"stagnated", row.stagnated}};
}

/// "3.1e-04", with the share of the adds that stagnated and of the sums that overflowed where there are any.
std::string accumulation_cell(const AccumulationRow& row) {
  std::string text = row.relative_error == 0.0 ? "0" : cell(row.relative_error, "{:.0e}");
  if (row.stagnated >= 0.005) text += fmt::format(" s{:.0f}%", 100 * row.stagnated);
  if (row.overflowed > 0) text += fmt::format(" o{:.0f}%", 100 * row.overflowed);
  return text;
}

/// A table per kind of terms: a row per model, a column per length.
std::string accumulation_tables(const std::vector<AccumulationRow>& all) {
  std::string text;
  for (std::size_t first = 0; first < all.size();) {
    std::vector<std::vector<std::string>> rows{{all[first].terms}};
    std::int64_t length = 0;
    std::size_t i = first;
    for (std::size_t row = 1; i < all.size() && all[i].terms == all[first].terms; ++i, ++row) {
      if (all[i].count != length) {
        length = all[i].count;
        rows[0].push_back(fmt::format("K={}", length));
        row = 1;
      }
      if (row == rows.size()) rows.push_back({all[i].model});
      rows[row].push_back(accumulation_cell(all[i]));
    }
    text += fmt::format("\n{}", text_table(rows));
    first = i;
  }
  return fmt::format(
      "\n  median error relative to the sum of magnitudes; s: adds that changed nothing, o: sums that "
      "overflowed\n{}",
      text);
}

/// A line per arm of which a step overflowed: what did first, in its first such step.
std::string overflow_lines(const ExperimentSummary& summary) {
  std::string text;
  for (const ArmSummary& arm : summary.arms) {
    if (arm.overflows.empty()) continue;
    const std::size_t more = arm.overflows.size() - 1;
    text += fmt::format("  {}: {}{}\n", arm.arm, arm.overflows.front(),
                        more == 0 ? "" : fmt::format("; {} more steps overflowed", more));
  }
  return text.empty() ? "" : "\n  overflows\n" + text;
}

std::string prediction_table(const Experiment& experiment, const ExperimentSummary& summary) {
  if (summary.predictions.empty()) return "";
  const std::string& nearest = summary.predictions.front().tensor;
  std::vector<std::vector<std::string>> rows{
      {"arm", "nearest the loss: " + nearest, "activation gradients", "weight gradients"}};
  for (const Arm& arm : experiment.arms) {
    const auto is_of_arm = [&](const UnderflowPrediction& entry) { return entry.arm == arm.name; };
    if (std::any_of(summary.predictions.begin(), summary.predictions.end(), is_of_arm)) {
      rows.push_back(prediction_row(summary, arm.name));
    }
  }
  constexpr std::string_view note =
      "Further from the loss the counts leave the prediction, most of them downwards: what was flushed above "
      "arrives as an exact zero.";
  return fmt::format(
      "\n  flushed to zero at the first step, of all elements: predicted from the histograms of {} / "
      "counted\n"
      "\n{}\n  {}\n",
      experiment.predicts_from, text_table(rows), note);
}

/// A line per arm.
std::string arm_table(const Experiment& experiment, const ExperimentSummary& summary) {
  if (experiment.arm_lines == ArmLines::hidden) return "";
  const ReportedMetric& metric = experiment.metric;
  std::vector<std::vector<std::string>> rows{
      {"arm", "seeds", metric.unit.empty() ? metric.name : metric.name + " " + metric.unit, "95 % interval",
       "diverged", "skipped", "flushed", "lost updates", "ms/step"}};
  if (experiment.scale_columns == ScaleColumns::shown) {
    rows[0].insert(rows[0].end(), {"last skip", "log2 final scale", "first at it"});
  }
  for (const ArmSummary& arm : summary.arms) rows.push_back(arm_row(experiment, arm));
  if (knows_memory(summary)) {
    rows[0].push_back("peak MiB");
    for (std::size_t i = 0; i < summary.arms.size(); ++i) {
      const auto& bytes = summary.arms[i].peak_device_bytes;
      rows[i + 1].push_back(cell(bytes ? std::optional(*bytes / (1 << 20)) : bytes, "{:.0f}"));
    }
  }
  return text_table(rows);
}

}  // namespace

Json to_json(const Experiment& experiment, const ExperimentSummary& summary) {
  Json arms = Json::array(), predictions = Json::array();
  for (const ArmSummary& arm : summary.arms) arms.push_back(arm_json(arm));
  for (const UnderflowPrediction& entry : summary.predictions) predictions.push_back(prediction_json(entry));
  Json json{{"format_version", results_format_version},
            {"experiment", experiment.name},
            {"title", experiment.summary},
            {"metric", experiment.metric.name},
            {"unit", experiment.metric.unit},
            {"lower_is_better", experiment.metric.lower_is_better},
            {"paper", experiment.paper},
            {"arms", arms},
            {"predictions", predictions},
            {"verdict", experiment.verdict(summary)}};
  if (experiment.accumulation != nullptr) {
    for (const AccumulationRow& row : experiment.accumulation()) {
      json["accumulation"].push_back(accumulation_json(row));
    }
  }
  if (!experiment.harm_tasks.empty()) json["harm"] = to_json(summary.harm);
  return json;
}

std::string to_table(const Experiment& experiment, const ExperimentSummary& summary) {
  const std::string sums =
      experiment.accumulation == nullptr ? "" : accumulation_tables(experiment.accumulation());
  return fmt::format("{}: {}\n\n{}{}{}{}{}\n  paper:   {}\n  verdict: {}\n", experiment.name,
                     experiment.summary, arm_table(experiment, summary), overflow_lines(summary),
                     prediction_table(experiment, summary), harm_tables(summary.harm), sums, experiment.paper,
                     experiment.verdict(summary));
}

}  // namespace halfscope
