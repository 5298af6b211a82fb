// Says what an experiment's results say, where they are its own.
#include "experiments/results/verdict.hpp"

#include <algorithm>

#include "experiments/results/comparison.hpp"

namespace halfscope {
std::string why_withheld(const ExperimentSummary& summary) {
  if (summary.settings.size == RunSize::smoke) return "runs of smoke size mean nothing";
  const auto trains = [](const SettingDifference& difference) {
    return difference.effect == Effect::training;
  };
  if (std::ranges::any_of(summary.settings.differences, trains))
    return "a verdict is for the experiment's own settings";
  return "";
}

Verdict verdict_on(const Experiment& experiment, const ExperimentSummary& summary) {
  if (experiment.verdict.empty()) return {};
  const std::string withheld = why_withheld(summary);
  if (!withheld.empty()) return {"", withheld};
  return {fill_in(experiment.verdict, judged_part(experiment, summary)), ""};
}

std::vector<Judgement> judge_claim(const Experiment& experiment, const ExperimentSummary& summary) {
  std::vector<Judgement> judged(experiment.claim.expectations.size(), Judgement::not_judged);
  if (!why_withheld(summary).empty()) return judged;
  const ExperimentSummary part = judged_part(experiment, summary);
  std::ranges::transform(experiment.claim.expectations, judged.begin(),
                         [&](const Expectation& expectation) { return judge(part, expectation); });
  return judged;
}

ExperimentSummary judged_part(const Experiment& experiment, const ExperimentSummary& summary) {
  ExperimentSummary judged = summary;
  if (experiment.verdict_arms.empty()) return judged;
  std::erase_if(judged.arms, [&](const ArmSummary& arm) {
    return std::ranges::find(experiment.verdict_arms, arm.arm) == experiment.verdict_arms.end();
  });
  return judged;
}

}  // namespace halfscope
