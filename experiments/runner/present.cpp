// Renders summaries as text.
#include "experiments/runner/present.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include <halfscope/core/escape.hpp>
#include <halfscope/policy/policy.hpp>

#include "experiments/runner/all_reduce_present.hpp"
#include "experiments/runner/arm_table.hpp"
#include "experiments/runner/harm_present.hpp"
#include "experiments/runner/published_rows.hpp"
#include "experiments/runner/setting_differences.hpp"
#include "experiments/runner/text_table.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace {

std::string cell(const std::optional<double>& value, const std::string& format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
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

std::vector<Cell> prediction_row(const ExperimentSummary& summary, const std::string& arm) {
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

/// A row per length of utterances.
std::string ctc_table(const std::vector<CtcPrecisionRow>& all) {
  std::vector<std::vector<std::string>> rows{
      {"frames", "labels", "logits", "loss", "in FP16", "gradient's error", "cosine"}};
  for (const CtcPrecisionRow& row : all) {
    rows.push_back({fmt::format("{}", row.frames), fmt::format("{}", row.labels),
                    fmt::format("+-{:.1f}", row.deviation), fmt::format("{:.1f}", row.loss),
                    fmt::format("{:.1f}", row.fp16_loss), fmt::format("{:.2g}", row.gradient_error),
                    fmt::format("{:.3f}", row.cosine)});
  }
  return fmt::format("\n  CTC with path likelihoods in FP16, beside FP32\n\n{}", text_table(rows));
}

/// "  LABELtext", its lines indented by as much as the label.
std::string paragraph(std::string_view label, std::string_view text, std::size_t width) {
  constexpr std::size_t indent = 2;
  const std::size_t room = width - std::min(width, indent);
  return fmt::format("  {}\n", wrapped(fmt::format("{}{}", label, escaped(text)), room,
                                       std::string(indent + label.size(), ' ')));
}

std::string prediction_table(const Experiment& experiment, const ExperimentSummary& summary,
                             std::size_t width) {
  if (summary.predictions.empty()) return "";
  const std::string& nearest = summary.predictions.front().tensor;
  Table table{{{"arm", "arm"},
               {"nearest", "nearest the loss: " + escaped(nearest), 2},
               {"activation_gradients", "activation gradients", 3},
               {"weight_gradients", "weight gradients", 1}},
              {}};
  for (const Arm& arm : experiment.arms) {
    const auto is_of_arm = [&](const UnderflowPrediction& entry) { return entry.arm == arm.name; };
    if (std::ranges::any_of(summary.predictions, is_of_arm))
      table.rows.push_back(prediction_row(summary, arm.name));
  }
  const std::string title = fmt::format(
      "flushed to zero at the first step, of all elements: predicted from the histograms of {} / counted",
      experiment.predicts_from);
  constexpr std::string_view note =
      "Further from the loss the counts leave the prediction, most of them downwards: what was flushed above "
      "arrives as an exact zero.";
  return fmt::format("\n{}\n{}\n{}", paragraph("", title, width),
                     write_table(table, {TableFormat::text, width}), paragraph("", note, width));
}

/// "2 running, 5 not begun", by the first word of the status.
std::string counts_by_status(const std::vector<UnfinishedRun>& runs) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> words{
      {{"RUNNING", "running"},
       {"STOPPED", "stopped"},
       {"FAILED", "failed"},
       {not_begun_status, "not begun"},
       {"", "of unknown status"}}};
  std::array<std::int64_t, words.size()> counts{};
  for (const UnfinishedRun& run : runs) {
    const auto found =
        std::ranges::find_if(words, [&](const auto& word) { return run.status.starts_with(word.first); });
    ++counts[static_cast<std::size_t>(found - words.begin())];
  }
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < words.size(); ++i)
    if (counts[i] > 0) parts.push_back(fmt::format("{} {}", counts[i], words[i].second));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// Settings that are not the experiment's own, arms whose seeds differ, and runs without a result.
std::string settings_lines(const ExperimentSummary& summary, std::size_t width) {
  std::string text;
  if (summary.settings.size != RunSize::small)
    text += fmt::format("  size: {}\n", name_of(summary.settings.size));
  if (!summary.settings.differences.empty())
    text += paragraph("settings: ", to_string(summary.settings.differences), width);
  for (const ArmSummary& arm : summary.arms) {
    if (!arm.mixed.empty())
      text +=
          fmt::format("  {}: no mean, since its seeds differ in {}\n", arm.arm, fmt::join(arm.mixed, ", "));
  }
  if (!summary.unfinished.empty()) text += paragraph("missing: ", missing_runs(summary), width);
  for (const UnfinishedRun& run : summary.unfinished) {
    if (run.status != not_begun_status)
      text += paragraph("no result: ", fmt::format("{} seed {}: {}", run.arm, run.seed, run.status), width);
  }
  return text.empty() ? "" : "\n" + text;
}

/// What the paper says, and the verdict or why there is none.
std::string closing_lines(const Experiment& experiment, const ExperimentSummary& summary, std::size_t width) {
  const Verdict verdict = verdict_on(experiment, summary);
  std::string text;
  if (!experiment.paper.empty()) text += paragraph("paper:   ", experiment.paper, width);
  if (!verdict.text.empty()) text += paragraph("verdict: ", verdict.text, width);
  if (!verdict.withheld.empty()) text += paragraph("verdict: ", "none; " + verdict.withheld, width);
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

/// A line per row of the paper's table.
std::string published_lines(const Experiment& experiment, const ExperimentSummary& summary,
                            std::size_t width) {
  if (experiment.published.empty()) return "";
  return "\n" + write_table(published_table(experiment, summary), {TableFormat::text, width});
}

/// A line per arm.
std::string arm_lines(const Experiment& experiment, const ExperimentSummary& summary,
                      const TextStyle& style) {
  if (experiment.arm_lines == ArmLines::hidden) return "";
  Table table = arm_table(experiment, summary, TableFormat::text);
  if (!style.sort_by.empty()) sort_rows(table, style.sort_by);
  return write_table(table, {TableFormat::text, style.width});
}

}  // namespace

std::string missing_runs(const ExperimentSummary& summary) {
  std::int64_t finished = 0;
  for (const ArmSummary& arm : summary.arms) finished += std::ssize(arm.values);
  const std::int64_t missing = std::ssize(summary.unfinished);
  return fmt::format("{} of {} runs: {}", missing, finished + missing, counts_by_status(summary.unfinished));
}

std::string to_table(const Experiment& experiment, const ExperimentSummary& summary, const TextStyle& style) {
  const std::string sums =
      experiment.accumulation == nullptr ? "" : accumulation_tables(experiment.accumulation());
  const std::string paths = experiment.ctc_precision == nullptr ? "" : ctc_table(experiment.ctc_precision());
  const std::string means =
      experiment.all_reduces == nullptr ? "" : all_reduce_tables(experiment.all_reduces());
  return fmt::format("{}\n\n{}{}{}{}{}{}{}{}{}{}{}",
                     wrapped(fmt::format("{}: {}", escaped(experiment.name), escaped(experiment.summary)),
                             style.width, "  "),
                     arm_lines(experiment, summary, style), published_lines(experiment, summary, style.width),
                     settings_lines(summary, style.width), overflow_lines(summary),
                     all_reduce_lines(summary, style.width),
                     prediction_table(experiment, summary, style.width), harm_tables(summary.harm), sums,
                     paths, means, closing_lines(experiment, summary, style.width));
}

}  // namespace halfscope
