// Renders summaries as text.
#include "experiments/results/report_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include <halfscope/core/escape.hpp>

#include "experiments/results/arm_table.hpp"
#include "experiments/results/claim_table.hpp"
#include "experiments/results/setting_differences.hpp"
#include "experiments/results/verdict.hpp"

namespace halfscope {
namespace {

/// "  LABELtext", its lines indented by as much as the label.
std::string paragraph(std::string_view label, std::string_view text, std::size_t width) {
  constexpr std::size_t indent = 2;
  const std::size_t room = width - std::min(width, indent);
  return fmt::format("  {}\n", wrapped(fmt::format("{}{}", label, escaped(text)), room,
                                       std::string(indent + label.size(), ' ')));
}

/// "2 running, 5 not begun", by the first word of the status.
std::string counts_by_status(const std::vector<UnfinishedRun>& runs) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> words{
      {{"RUNNING", "running"},
       {"STOPPED", "stopped"},
       {"FAILED", "failed"},
       {not_begun_status, "not begun"},
       {done_status, "without summary.json"},
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
    if (run.status == not_begun_status) continue;
    const bool is_done = run.status.starts_with(done_status);
    text += paragraph("no result: ",
                      fmt::format("{} seed {}: {}{}", run.arm, run.seed, run.status,
                                  is_done ? ", without summary.json; run it again with --resume" : ""),
                      width);
  }
  return text.empty() ? "" : "\n" + text;
}

/// The claim's expectations with their intervals, and the reasons of their margins.
std::string claim_lines(const Experiment& experiment, const ExperimentSummary& summary, std::size_t width) {
  if (experiment.claim.expectations.empty()) return "";
  std::string text =
      "\n" + paragraph("claim, ", "judged by differences over seeds: how far each arm ends behind", width) +
      "\n" + write_table(claim_table(experiment, summary), {TableFormat::text, width}) + "\n";
  for (const std::string& reason : margin_reasons(experiment)) text += paragraph("margin:  ", reason, width);
  return text + paragraph("claim:   ",
                          fmt::format("{} {}", experiment.claim.text, claim_outcome(experiment, summary)),
                          width);
}

/// The paper's result, and the verdict or the reason why there is none.
std::string closing_lines(const Experiment& experiment, const ExperimentSummary& summary, std::size_t width) {
  const Verdict verdict = verdict_on(experiment, summary);
  std::string text;
  if (!experiment.paper.empty()) text += paragraph("paper:   ", experiment.paper, width);
  if (!verdict.text.empty()) text += paragraph("verdict: ", verdict.text, width);
  if (!verdict.withheld.empty()) text += paragraph("verdict: ", "none; " + verdict.withheld, width);
  return text.empty() ? "" : "\n" + text;
}

/// A line per arm.
std::string arm_lines(const Experiment& experiment, const ExperimentSummary& summary,
                      const TextStyle& style) {
  if (experiment.report.arms == Shown::hidden) return "";
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
  std::string text = wrapped(fmt::format("{}: {}", escaped(experiment.name), escaped(experiment.summary)),
                             style.width, "  ") +
                     "\n\n" + arm_lines(experiment, summary, style) + settings_lines(summary, style.width);
  for (const AnalysisResult& finding : summary.findings) text += to_text(finding, style.width);
  return text + claim_lines(experiment, summary, style.width) +
         closing_lines(experiment, summary, style.width);
}

}  // namespace halfscope
