// Renders summaries as JSON.
#include "experiments/runner/summary_json.hpp"

#include <nlohmann/json.hpp>

#include "experiments/runner/harm_present.hpp"
#include "experiments/runner/published_rows.hpp"
#include "experiments/runner/verdict_text.hpp"
#include "sim/train/run_folder.hpp"

namespace halfscope {
namespace {

Json json_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

Json arm_json(const ArmSummary& arm) {
  Json values = Json::array();
  for (const auto& value : arm.values) values.push_back(json_or_null(value));
  Json json{{"arm", arm.arm},
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
  if (arm.accuracy) json["accuracy"] = *arm.accuracy;
  if (arm.peak_step_bytes) json["peak_step_bytes"] = *arm.peak_step_bytes;
  if (arm.all_reduce) {
    json["all_reduce"] = {{"ranks", arm.all_reduce->ranks},
                          {"stagnated", arm.all_reduce->stagnated},
                          {"flushed", arm.all_reduce->flushed},
                          {"overflowed", arm.all_reduce->overflowed},
                          {"stagnated_steps", arm.all_reduce->stagnated_steps}};
  }
  if (arm.further_skipped) json["further_skipped"] = *arm.further_skipped;
  return json;
}

Json prediction_json(const UnderflowPrediction& entry) {
  return {{"arm", entry.arm},        {"scale", entry.scale},       {"tensor", entry.tensor},
          {"role", entry.role},      {"elements", entry.elements}, {"predicted", entry.predicted},
          {"counted", entry.counted}};
}

Json accumulation_json(const AccumulationRow& row) {
  return {{"terms", row.terms},           {"model", row.model},
          {"count", row.count},           {"relative_error", json_or_null(row.relative_error)},
          {"overflowed", row.overflowed}, {"stagnated", row.stagnated}};
}

Json ctc_json(const CtcPrecisionRow& row) {
  return {{"frames", row.frames}, {"labels", row.labels},       {"deviation", row.deviation},
          {"loss", row.loss},     {"fp16_loss", row.fp16_loss}, {"gradient_error", row.gradient_error},
          {"cosine", row.cosine}};
}

Json all_reduce_json(const AllReduceRow& row) {
  return {{"gradients", row.gradients},
          {"order", row.order},
          {"division", row.division},
          {"ranks", row.ranks},
          {"relative_error", json_or_null(row.relative_error)},
          {"stagnated", row.stagnated},
          {"flushed", row.flushed},
          {"overflowed", row.overflowed}};
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

/// "claim": a sentence, whether it holds (null: open), and the same of what it leads one to expect.
Json claim_json(const Experiment& experiment, const ExperimentSummary& summary) {
  const auto open_or = [](const std::optional<bool>& judged) { return judged ? Json(*judged) : Json(); };
  const std::vector<std::optional<bool>> judged = judge_claim(experiment, summary);
  Json expectations = Json::array();
  for (std::size_t i = 0; i < judged.size(); ++i) {
    const Expectation& expectation = experiment.claim.expectations[i];
    expectations.push_back({{"arm", expectation.arm},
                            {"baseline", expectation.baseline},
                            {"expected", std::string(name_of(expectation.expected))},
                            {"tolerance", expectation.tolerance},
                            {"holds", open_or(judged[i])}});
  }
  return {
      {"text", experiment.claim.text}, {"holds", open_or(all_hold(judged))}, {"expectations", expectations}};
}

Json unfinished_json(const std::vector<UnfinishedRun>& runs) {
  Json list = Json::array();
  for (const UnfinishedRun& run : runs)
    list.push_back({{"arm", run.arm}, {"seed", run.seed}, {"status", run.status}});
  return list;
}

}  // namespace

Json to_json(const Experiment& experiment, const ExperimentSummary& summary) {
  Json arms = Json::array(), predictions = Json::array();
  for (const ArmSummary& arm : summary.arms) arms.push_back(arm_json(arm));
  for (const UnderflowPrediction& entry : summary.predictions) predictions.push_back(prediction_json(entry));
  const Verdict verdict = verdict_on(experiment, summary);
  Json json{{"format_version", results_format_version},
            {"experiment", experiment.name},
            {"place", experiment.place},
            {"title", experiment.summary},
            {"metric", experiment.metric.name},
            {"unit", experiment.metric.unit},
            {"lower_is_better", experiment.metric.lower_is_better},
            {"paper", experiment.paper},
            {"claim", claim_json(experiment, summary)},
            {"arms", arms},
            {"predictions", predictions},
            {"size", std::string(name_of(summary.settings.size))},
            {"settings_differ", differences_json(summary.settings.differences)},
            {"unfinished", unfinished_json(summary.unfinished)},
            {"verdict", verdict.text}};
  if (!verdict.withheld.empty()) json["verdict_withheld"] = verdict.withheld;
  if (experiment.accumulation != nullptr) {
    for (const AccumulationRow& row : experiment.accumulation()) {
      json["accumulation"].push_back(accumulation_json(row));
    }
  }
  if (experiment.ctc_precision != nullptr) {
    for (const CtcPrecisionRow& row : experiment.ctc_precision()) json["ctc"].push_back(ctc_json(row));
  }
  if (experiment.all_reduces != nullptr) {
    for (const AllReduceRow& row : experiment.all_reduces())
      json["all_reduces"].push_back(all_reduce_json(row));
  }
  if (!experiment.published.empty()) json["published"] = published_json(experiment, summary);
  if (!experiment.harm_tasks.empty()) json["harm"] = to_json(summary.harm);
  return json;
}

}  // namespace halfscope
