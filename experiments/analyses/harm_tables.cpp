// Predictors of harm: the evidence as JSON, as tables, and in a sentence.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include <halfscope/scaling/advisor.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/analyses/harm.hpp"

namespace halfscope {
namespace harm_tables {
namespace {

Json json_of(const RightCount& count) {
  return {{"right", count.right}, {"total", count.total}};
}

/// Without fitted tasks there is no threshold.
Json json_of(const PredictorResult& result) {
  const auto chosen = [&](double value) { return result.fitted.total > 0 ? Json(value) : Json(); };
  return {{"name", result.name},
          {"steps", std::string(name_of(result.steps))},
          {"threshold", chosen(result.threshold)},
          {"low", chosen(result.low)},
          {"high", chosen(result.high)},
          {"fitted", json_of(result.fitted)},
          {"held_out", json_of(result.held_out)}};
}

Json json_of(const TaskAdvice& advice) {
  return {{"task", advice.task},
          {"format", advice.format},
          {"enough_from_log2", advice.enough_from},
          {"use_log2", advice.use},
          {"overflow_beyond_log2", advice.overflow_beyond},
          {"trained_at_log2", advice.trained_at ? Json(*advice.trained_at) : Json()},
          {"loss_ratio", advice.loss_ratio ? Json(*advice.loss_ratio) : Json()},
          {"fp32_spread", advice.fp32_spread}};
}

Json json_of(const ScalerTraining& training) {
  return {{"task", training.task},
          {"arm", training.arm},
          {"seed", training.seed},
          {"loss_ratio", training.loss_ratio ? Json(*training.loss_ratio) : Json()},
          {"harmed", training.harmed()}};
}

Json json_of(const HarmTraining& training) {
  Json predictors = Json::array();
  for (const double value : training.predictors) {
    predictors.push_back(std::isfinite(value) ? Json(value) : Json());
  }
  return {{"task", training.task},
          {"set", std::string(name_of(training.set))},
          {"seed", training.seed},
          {"scale_log2", training.scale_log2},
          {"loss_ratio", training.loss_ratio ? Json(*training.loss_ratio) : Json()},
          {"harmed", training.harmed()},
          {"predictors", predictors}};
}

std::string right_words(const RightCount& count) {
  return fmt::format("{} of {}", count.right, count.total);
}

Table predictor_table_of(const HarmEvidence& evidence) {
  Table table{{{"name", "predictor"},
               {"steps", "steps"},
               {"threshold", "threshold"},
               {"interval", "95 % interval"},
               {"right", "right"},
               {"held_out", "right, held-out tasks"}},
              {}};
  for (const PredictorResult& result : evidence.predictors) {
    table.rows.push_back({result.name, std::string(name_of(result.steps)),
                          fmt::format("{:.2g}", result.threshold),
                          fmt::format("{:.2g} .. {:.2g}", result.low, result.high),
                          right_words(result.fitted), right_words(result.held_out)});
  }
  return table;
}

/// Scales at which trainings of a task were harmed, and those at which none was.
struct TaskScales {
  std::vector<int> unharmed, harmed, diverged;
};

TaskScales scales_of(const HarmEvidence& evidence, const std::string& task) {
  std::map<int, std::pair<bool, bool>> found;  // harmed, diverged
  for (const HarmTraining& training : evidence.trainings) {
    if (training.task != task) continue;
    auto& [harmed, diverged] = found[training.scale_log2];
    harmed = harmed || training.harmed();
    diverged = diverged || training.diverged();
  }
  TaskScales scales;
  for (const auto& [scale, seen] : found) {
    (seen.second ? scales.diverged : seen.first ? scales.harmed : scales.unharmed).push_back(scale);
  }
  return scales;
}

std::string range_words(const std::vector<int>& scales) {
  if (scales.empty()) return "-";
  return scales.front() == scales.back() ? fmt::format("2^{}", scales.front())
                                         : fmt::format("2^{} .. 2^{}", scales.front(), scales.back());
}

Table task_table_of(const HarmEvidence& evidence) {
  Table table;
  for (const char* title : {"task", "harmed", "unharmed", "diverged", "enough from", "use", "overflow beyond",
                            "loss near it", "FP32 seeds"})
    table.columns.push_back({title, title});
  for (const TaskAdvice& advice : evidence.advice) {
    const TaskScales scales = scales_of(evidence, advice.task);
    table.rows.push_back(
        {advice.task, range_words(scales.harmed), range_words(scales.unharmed), range_words(scales.diverged),
         fmt::format("2^{}", advice.enough_from), fmt::format("2^{}", advice.use),
         fmt::format("2^{}", advice.overflow_beyond),
         advice.loss_ratio ? fmt::format("{:.3f} at 2^{}", *advice.loss_ratio, *advice.trained_at) : "-",
         fmt::format("{:.3f}", advice.fp32_spread)});
  }
  return table;
}

double share(const RightCount& count) {
  return count.total == 0 ? 0 : static_cast<double>(count.right) / static_cast<double>(count.total);
}

/// Share of the trainings of both sets that a predictor judges rightly.
double share_right(const PredictorResult& result) {
  return share({result.fitted.right + result.held_out.right, result.fitted.total + result.held_out.total});
}

std::string_view words_of(PredictorSteps steps) {
  constexpr std::array<std::string_view, enum_names<PredictorSteps>.size()> words{
      "of the first step", "the largest of all watched steps", "the mean of all watched steps"};
  return words.at(static_cast<std::size_t>(steps));
}

/// The predictor of this kind, probed or not, that is right most often; null without any.
const PredictorResult* best_of(const HarmEvidence& evidence, bool probed) {
  const PredictorResult* best = nullptr;
  for (const PredictorResult& result : evidence.predictors) {
    if ((result.name == "probed error") != probed) continue;
    if (best == nullptr || share_right(result) > share_right(*best)) best = &result;
  }
  return best;
}

std::string sentence(const PredictorResult& result) {
  return fmt::format(
      "{}, {}, threshold {:.2g} ({:.2g} to {:.2g}): right in {} trainings, in {} of held-out tasks",
      result.name, words_of(result.steps), result.threshold, result.low, result.high,
      right_words(result.fitted), right_words(result.held_out));
}

template <typename Entry>
Json list_of(const std::vector<Entry>& entries) {
  Json list = Json::array();
  for (const Entry& entry : entries) list.push_back(json_of(entry));
  return list;
}

Json values_of(const HarmEvidence& evidence) {
  return {{"harmful", harmful},
          {"tolerance", AdvisorOptions{}.tolerance},
          {"advisor", json_of(evidence.advisor)},
          {"advisor_held_out", json_of(evidence.advisor_held_out)},
          {"predictors", list_of(evidence.predictors)},
          {"advice", list_of(evidence.advice)},
          {"trainings", list_of(evidence.trainings)},
          {"scalers", list_of(evidence.scalers)}};
}

/// Whether thresholds were chosen on any task.
bool is_fitted(const HarmEvidence& evidence) {
  return std::ranges::any_of(evidence.trainings,
                             [](const HarmTraining& training) { return training.set == HarmSet::fitted; });
}

std::string verdict_of(const HarmEvidence& evidence) {
  std::string text = fmt::format(
      "The advisor's rule, at most {:g} % of a gradient's sum of magnitudes "
      "lost to underflow and no overflow, is right in ",
      100 * AdvisorOptions{}.tolerance);
  if (!is_fitted(evidence)) return text + right_words(evidence.advisor_held_out) + " trainings";
  text += fmt::format("{} trainings, in {} of held-out tasks", right_words(evidence.advisor),
                      right_words(evidence.advisor_held_out));
  if (const PredictorResult* free = best_of(evidence, false))
    text += fmt::format(". Without a probe, the best predictor is the {}", sentence(*free));
  if (const PredictorResult* probed = best_of(evidence, true))
    text += fmt::format(". With one: {}", sentence(*probed));
  return text;
}

}  // namespace
}  // namespace harm_tables

AnalysisResult find_harm(const AnalysisInput& input) {
  using namespace harm_tables;
  const HarmEvidence evidence = judge_predictors(input.experiment, input.folder);
  AnalysisResult finding{.key = "harm", .values = values_of(evidence)};
  if (evidence.trainings.empty()) return finding;
  if (is_fitted(evidence))
    finding.sections.push_back(
        {.heading =
             fmt::format("predictors of harm by underflow, from the FP32 run alone; harm: the loss ends more "
                         "than {:.0f} % above FP32's",
                         100 * harmful),
         .table = predictor_table_of(evidence)});
  finding.sections.push_back(
      {.heading =
           "the advisor's answers from the FP32 runs, beside the trainings; losses are ratios to FP32's",
       .table = task_table_of(evidence)});
  finding.sentence = verdict_of(evidence);
  return finding;
}

}  // namespace halfscope
