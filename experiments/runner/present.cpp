// Renders summaries as text.
#include "experiments/runner/present.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/runner/harm_present.hpp"
#include "experiments/runner/setting_differences.hpp"
#include "experiments/runner/text_table.hpp"
#include "experiments/runner/verdict_text.hpp"
#include "sim/policy.hpp"

namespace halfscope {
namespace {

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

/// Settings that are not the experiment's own, arms whose seeds differ, and runs without a result.
std::string settings_lines(const ExperimentSummary& summary) {
  std::string text;
  if (summary.settings.size != RunSize::small)
    text += fmt::format("  size: {}\n", name_of(summary.settings.size));
  if (!summary.settings.differences.empty())
    text += fmt::format("  settings: {}\n", to_string(summary.settings.differences));
  for (const ArmSummary& arm : summary.arms) {
    if (!arm.mixed.empty())
      text +=
          fmt::format("  {}: no mean, since its seeds differ in {}\n", arm.arm, fmt::join(arm.mixed, ", "));
  }
  for (const UnfinishedRun& run : summary.unfinished)
    text += fmt::format("  no result: {} seed {}: {}\n", run.arm, run.seed, run.status);
  return text.empty() ? "" : "\n" + text;
}

/// What the paper says, and the verdict or why there is none.
std::string closing_lines(const Experiment& experiment, const ExperimentSummary& summary) {
  const Verdict verdict = verdict_on(experiment, summary);
  std::string text;
  if (!experiment.paper.empty()) text += fmt::format("  paper:   {}\n", experiment.paper);
  if (!verdict.text.empty()) text += fmt::format("  verdict: {}\n", verdict.text);
  if (!verdict.withheld.empty()) text += fmt::format("  verdict: none; {}\n", verdict.withheld);
  return text.empty() ? "" : "\n" + text;
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

std::string to_table(const Experiment& experiment, const ExperimentSummary& summary) {
  const std::string sums =
      experiment.accumulation == nullptr ? "" : accumulation_tables(experiment.accumulation());
  return fmt::format("{}: {}\n\n{}{}{}{}{}{}{}", experiment.name, experiment.summary,
                     arm_table(experiment, summary), settings_lines(summary), overflow_lines(summary),
                     prediction_table(experiment, summary), harm_tables(summary.harm), sums,
                     closing_lines(experiment, summary));
}

}  // namespace halfscope
