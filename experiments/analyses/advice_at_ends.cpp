// The advice on the first and last histograms of a baseline, beside arms at constant scales.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include <halfscope/scaling/advisor.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/analyses/constant_scale.hpp"
#include "experiments/analyses/harm_predictors.hpp"
#include "experiments/results/run_records.hpp"

namespace halfscope {
namespace advice_at_ends {
namespace {

std::string_view place_of(int scale_log2, const ScaleWindow& window) {
  if (window.contains(scale_log2)) return "within";
  return scale_log2 < window.low ? "below" : "above";
}

std::string ending_of(const ArmSummary& arm, const ArmSummary& baseline) {
  if (arm.diverged > 0) return fmt::format("diverged {} of {}", arm.diverged, arm.seeds.size());
  return arm.mean && baseline.mean ? fmt::format("{:.3f} of FP32's", *arm.mean / *baseline.mean) : "-";
}

Json json_of(const ArmSummary& arm, int scale_log2, const Advice& advice) {
  return {{"arm", arm.arm},
          {"scale_log2", scale_log2},
          {"enough_from_log2", advice.joint->low},
          {"use_log2", *advice.recommended},
          {"overflow_beyond_log2", advice.joint->high}};
}

}  // namespace
}  // namespace advice_at_ends

AnalysisResult find_advice_at_ends(const AnalysisInput& input) {
  using namespace advice_at_ends;
  Table table;
  for (const char* title :
       {"scale of", "scale", "enough from", "use", "overflow beyond", "its place", "ends at"})
    table.columns.push_back({title, title});
  AnalysisResult finding{.key = "advice_at_ends", .values = Json::array()};
  const RunRecords records(input.folder);
  std::map<std::string, Advice> by_baseline;
  for (const ArmSummary& arm : input.judged.arms) {
    const std::optional<int> scale_log2 = constant_scale_log2(arm.loss_scale);
    const ArmSummary* baseline = input.judged.find(arm.baseline);
    if (!scale_log2 || baseline == nullptr) continue;
    if (!by_baseline.contains(arm.baseline))
      by_baseline.emplace(arm.baseline, advice_on(records, arm.baseline));
    const Advice& advice = by_baseline.at(arm.baseline);
    if (!advice.joint) continue;
    finding.values.push_back(json_of(arm, *scale_log2, advice));
    const auto power = [](int log2) { return fmt::format("2^{}", log2); };
    table.rows.push_back({arm.arm, power(*scale_log2), power(advice.joint->low), power(*advice.recommended),
                          power(advice.joint->high), std::string(place_of(*scale_log2, *advice.joint)),
                          ending_of(arm, *baseline)});
  }
  if (table.rows.empty()) return {};
  finding.sections.push_back(
      {.heading = "Advice on the FP32 runs' first and last histograms, beside constant scales",
       .table = std::move(table)});
  return finding;
}

}  // namespace halfscope
