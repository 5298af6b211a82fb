// A table of the paper's with our results beside it, row by row.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "experiments/analyses/analyses.hpp"
#include "experiments/results/comparison.hpp"
#include "experiments/results/difference.hpp"
#include "experiments/results/judgement.hpp"

namespace halfscope {
namespace published {
namespace {

/// Our results for a row.
struct Values {
  std::optional<double> baseline, arm, spread, detectable;
};

Values values_of(const PublishedRow& row, const ExperimentSummary& summary) {
  const ArmSummary *baseline = summary.find(row.baseline), *arm = summary.find(row.arm);
  return {.baseline = baseline == nullptr ? std::nullopt : baseline->mean,
          .arm = arm == nullptr ? std::nullopt : arm->mean,
          .spread = baseline == nullptr ? std::nullopt : seed_spread(*baseline),
          .detectable = baseline == nullptr || arm == nullptr
                            ? std::nullopt
                            : detectable(difference_of(summary.metric, *arm, *baseline))};
}

std::optional<double> difference(const std::optional<double>& from, const std::optional<double>& to) {
  return from && to ? std::optional(*to - *from) : std::nullopt;
}

Table table_of(const Experiment& experiment, const ExperimentSummary& summary) {
  const int digits = summary.metric.digits;
  const auto cell = [=](const std::optional<double>& value, const char* sign = "") {
    if (!value) return Cell("-", std::monostate{});
    return Cell(fmt::format(fmt::runtime(fmt::format("{{:{}.{}f}}", sign, digits)), *value), *value);
  };
  Table table{{{"row", "network"},
               {"baseline", "FP32"},
               {"arm", "mixed"},
               {"difference", "difference"},
               {"detectable", "detectable"},
               {"spread", "FP32's seeds differ by", 1},
               {"paper_baseline", "paper's FP32"},
               {"paper_arm", "mixed"},
               {"paper_difference", "difference", 2}},
              {}};
  for (const PublishedRow& row : experiment.published) {
    const Values ours = values_of(row, summary);
    if (!ours.baseline && !ours.arm) continue;
    table.rows.push_back({row.name, cell(ours.baseline), cell(ours.arm),
                          cell(difference(ours.baseline, ours.arm), "+"), cell(ours.detectable),
                          cell(ours.spread), cell(row.paper_baseline), cell(row.paper_arm),
                          cell(difference(row.paper_baseline, row.paper_arm), "+")});
  }
  return table;
}

Json values_json(const Experiment& experiment, const ExperimentSummary& summary) {
  const auto json = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  Json rows = Json::array();
  for (const PublishedRow& row : experiment.published) {
    const Values ours = values_of(row, summary);
    rows.push_back({{"row", row.name},
                    {"baseline", json(ours.baseline)},
                    {"arm", json(ours.arm)},
                    {"spread", json(ours.spread)},
                    {"detectable", json(ours.detectable)},
                    {"paper_baseline", json(row.paper_baseline)},
                    {"paper_arm", json(row.paper_arm)}});
  }
  return rows;
}

/// "GoogLeNet 0.40 points below FP32 (detectable: 2.10)"; empty where an arm was not run.
std::string row_text(const ExperimentSummary& summary, const PublishedRow& row) {
  const ArmSummary *fp32 = summary.find(row.baseline), *mixed = summary.find(row.arm);
  if (fp32 == nullptr || mixed == nullptr) return "";
  for (const ArmSummary* arm : {fp32, mixed})
    if (!arm->mean) return fmt::format("{}: {}", row.name, diverged_words(*arm));
  const double gap = *mixed->mean - *fp32->mean;
  const Difference difference = difference_of(summary.metric, *mixed, *fp32);
  const std::optional<double> least = detectable(difference);
  std::string text = fmt::format("{} {:.{}f}{} {} FP32", row.name, std::fabs(gap), summary.metric.digits,
                                 summary.metric.comparison == Comparison::points ? " points" : "",
                                 gap < 0 ? "below" : "above");
  if (least) text += fmt::format(" (detectable: {:.{}f})", *least, summary.metric.digits);
  if (least && *difference.behind > *least) text += ": more than the seeds explain";
  if (mixed->diverged > 0) text += "; " + diverged_words(*mixed);
  return text;
}

std::string sentence(const Experiment& experiment, const ExperimentSummary& summary) {
  std::string text;
  for (const PublishedRow& row : experiment.published) {
    const std::string found = row_text(summary, row);
    if (!found.empty()) text += (text.empty() ? "" : "; ") + found;
  }
  return text;
}

}  // namespace
}  // namespace published

AnalysisResult find_published(const AnalysisInput& input) {
  using namespace published;
  AnalysisResult finding{.key = "published", .values = values_json(input.experiment, input.summary)};
  Table table = table_of(input.experiment, input.summary);
  finding.sections.push_back({.heading = "", .table = std::move(table)});
  finding.sentence = sentence(input.experiment, input.judged);
  return finding;
}

}  // namespace halfscope
