// Lays out a table of the paper's beside our results.
#include "experiments/runner/published_rows.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace {

/// What is known of a row.
struct Values {
  std::optional<double> baseline, arm, spread;
};

Values values_of(const PublishedRow& row, const ExperimentSummary& summary) {
  const ArmSummary *baseline = summary.find(row.baseline), *arm = summary.find(row.arm);
  return {.baseline = baseline == nullptr ? std::nullopt : baseline->mean,
          .arm = arm == nullptr ? std::nullopt : arm->mean,
          .spread = baseline == nullptr ? std::nullopt : seed_spread(*baseline)};
}

std::optional<double> difference(const std::optional<double>& from, const std::optional<double>& to) {
  return from && to ? std::optional(*to - *from) : std::nullopt;
}

}  // namespace

Table published_table(const Experiment& experiment, const ExperimentSummary& summary) {
  const int digits = summary.metric.digits;
  const auto cell = [=](const std::optional<double>& value, const char* sign = "") {
    if (!value) return Cell("-", std::monostate{});
    return Cell(fmt::format(fmt::runtime(fmt::format("{{:{}.{}f}}", sign, digits)), *value), *value);
  };
  Table table{{{"row", "network"},
               {"baseline", "FP32"},
               {"arm", "mixed"},
               {"difference", "difference"},
               {"spread", "FP32's seeds differ by", 1},
               {"paper_baseline", "paper's FP32"},
               {"paper_arm", "mixed"},
               {"paper_difference", "difference", 2}},
              {}};
  for (const PublishedRow& row : experiment.published) {
    const Values ours = values_of(row, summary);
    if (!ours.baseline && !ours.arm) continue;
    table.rows.push_back({row.name, cell(ours.baseline), cell(ours.arm),
                          cell(difference(ours.baseline, ours.arm), "+"), cell(ours.spread),
                          cell(row.paper_baseline), cell(row.paper_arm),
                          cell(difference(row.paper_baseline, row.paper_arm), "+")});
  }
  return table;
}

Json published_json(const Experiment& experiment, const ExperimentSummary& summary) {
  const auto json = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  Json rows = Json::array();
  for (const PublishedRow& row : experiment.published) {
    const Values ours = values_of(row, summary);
    rows.push_back({{"row", row.name},
                    {"baseline", json(ours.baseline)},
                    {"arm", json(ours.arm)},
                    {"spread", json(ours.spread)},
                    {"paper_baseline", json(row.paper_baseline)},
                    {"paper_arm", json(row.paper_arm)}});
  }
  return rows;
}

}  // namespace halfscope
