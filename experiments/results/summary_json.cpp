// Renders summaries as JSON.
#include "experiments/results/summary_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "experiments/results/arm_columns.hpp"
#include "experiments/results/verdict.hpp"
#include "sim/train/run_folder.hpp"

namespace halfscope {
namespace {

Json json_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

Json json_or_null(const std::optional<bool>& value) {
  return value ? Json(*value) : Json();
}

/// The place of "a.b" in `json`.
Json& place_of(Json& json, std::string_view key) {
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos) return json[std::string(key)];
  return json[std::string(key.substr(0, dot))][std::string(key.substr(dot + 1))];
}

void add_columns(const ArmSummary& arm, Json& json) {
  for (std::size_t i = 0; i < arm.columns.size(); ++i) {
    const ArmColumn& column = arm_columns()[i];
    const std::optional<double>& value = arm.columns[i];
    if (column.in_json == InJson::never || (column.in_json == InJson::where_known && !value)) continue;
    place_of(json, column.key) = column.written == Written::count && value
                                     ? Json(static_cast<std::int64_t>(std::llround(*value)))
                                     : json_or_null(value);
  }
}

Json arm_json(const Experiment& experiment, const ExperimentSummary& summary, const ArmSummary& arm) {
  Json values = Json::array();
  for (const auto& value : arm.values) values.push_back(json_or_null(value));
  Json json{{"arm", arm.arm},
            {"baseline", arm.baseline.empty() ? Json() : Json(arm.baseline)},
            {"loss_scale", arm.loss_scale},
            {"loss_weight", arm.loss_weight},
            {"in_fp32", arm.in_fp32},
            {"seeds", arm.values.size()},
            {"seed_list", arm.seeds},
            {"mean", json_or_null(arm.mean)},
            {"low", json_or_null(arm.low)},
            {"high", json_or_null(arm.high)},
            {"as_good", json_or_null(as_good(experiment, summary, arm))},
            {"diverged", arm.diverged},
            {"diverged_step", arm.diverged_step ? Json(*arm.diverged_step) : Json()},
            {"beyond_untrained", arm.beyond},
            {"values", values},
            {"overflows", arm.overflows}};
  add_columns(arm, json);
  return json;
}

Json differences_json(const std::vector<SettingDifference>& differences) {
  Json list = Json::array();
  for (const SettingDifference& difference : differences) {
    list.push_back({{"key", difference.key},
                    {"own", difference.own},
                    {"found", difference.found},
                    {"arms", difference.arms}});
  }
  return list;
}

/// "holds" is null where the judgement is undecided or there is none.
void add_judgement(Judgement judgement, Json& json) {
  json["judgement"] = std::string(name_of(judgement));
  json["holds"] = json_or_null(decided(judgement));
}

Json difference_json(const Difference& difference) {
  return {{"behind", json_or_null(difference.behind)},
          {"low", json_or_null(difference.low)},
          {"high", json_or_null(difference.high)},
          {"pairing", std::string(name_of(difference.pairing))},
          {"seeds", difference.seeds},
          {"arm_diverged_alone", difference.arm_diverged_alone},
          {"baseline_diverged_alone", difference.baseline_diverged_alone}};
}

Json expectation_json(const Expectation& expectation, const ExperimentSummary& summary) {
  Json json{{"arm", expectation.arm},
            {"baseline", expectation.baseline},
            {"expected", std::string(name_of(expectation.expected))},
            {"margin", expectation.margin},
            {"reason", expectation.reason}};
  const ArmSummary *arm = summary.find(expectation.arm), *baseline = summary.find(expectation.baseline);
  if (arm != nullptr && baseline != nullptr)
    json["difference"] = difference_json(difference_of(summary.metric, *arm, *baseline));
  return json;
}

/// "claim": a sentence, whether it holds, and the same of what it leads one to expect.
Json claim_json(const Experiment& experiment, const ExperimentSummary& summary) {
  const std::vector<Judgement> judged = judge_claim(experiment, summary);
  Json expectations = Json::array();
  for (std::size_t i = 0; i < judged.size(); ++i) {
    expectations.push_back(expectation_json(experiment.claim.expectations[i], summary));
    add_judgement(judged[i], expectations.back());
  }
  Json json{{"text", experiment.claim.text}, {"expectations", expectations}};
  add_judgement(together(judged), json);
  return json;
}

Json unfinished_json(const std::vector<UnfinishedRun>& runs) {
  Json list = Json::array();
  for (const UnfinishedRun& run : runs)
    list.push_back({{"arm", run.arm}, {"seed", run.seed}, {"status", run.status}});
  return list;
}

/// Values under each finding's key, and the tables of all for a page.
void add_findings(const std::vector<AnalysisResult>& findings, Json& json) {
  Json tables = Json::array();
  for (const AnalysisResult& finding : findings) {
    if (!finding.values.is_null()) json[finding.key] = finding.values;
    if (!finding.sections.empty()) tables.push_back(to_json(finding));
  }
  json["findings"] = tables;
}

}  // namespace

Json to_json(const Experiment& experiment, const ExperimentSummary& summary) {
  Json arms = Json::array();
  for (const ArmSummary& arm : summary.arms) arms.push_back(arm_json(experiment, summary, arm));
  const Verdict verdict = verdict_on(experiment, summary);
  Json json{{"format_version", results_format_version},
            {"experiment", experiment.name},
            {"place", experiment.place},
            {"title", experiment.summary},
            {"metric", experiment.metric.name},
            {"unit", experiment.metric.unit},
            {"lower_is_better", experiment.metric.lower_is_better},
            {"comparison", std::string(name_of(experiment.metric.comparison))},
            {"paper", experiment.paper},
            {"claim", claim_json(experiment, summary)},
            {"arms", arms},
            {"predictions", Json::array()},
            {"size", std::string(name_of(summary.settings.size))},
            {"settings_differ", differences_json(summary.settings.differences)},
            {"unfinished", unfinished_json(summary.unfinished)},
            {"verdict", verdict.text}};
  if (!verdict.withheld.empty()) json["verdict_withheld"] = verdict.withheld;
  add_findings(summary.findings, json);
  return json;
}

}  // namespace halfscope
