// Says in words how an arm compares with its baseline.
#include "experiments/runner/verdict_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace halfscope {
namespace {

/// "2.25 points below", "0.381 below", "at 2.290 times": what stands between an arm and its baseline.
std::string distance(const ReportedMetric& metric, double ours, double theirs) {
  if (metric.comparison == Comparison::ratio) return fmt::format("at {:.3f} times", ours / theirs);
  const double gap = ours - theirs;
  return fmt::format("{:.{}f}{} {}", std::fabs(gap), metric.digits,
                     metric.comparison == Comparison::points ? " points" : "", gap < 0 ? "below" : "above");
}

}  // namespace

Verdict verdict_on(const Experiment& experiment, const ExperimentSummary& summary) {
  if (experiment.verdict == nullptr) return {};
  if (summary.settings.size == RunSize::smoke) return {"", "runs of smoke size mean nothing"};
  const auto trains = [](const SettingDifference& difference) {
    return difference.effect == Effect::training;
  };
  if (std::ranges::any_of(summary.settings.differences, trains))
    return {"", "a verdict is for the experiment's own settings"};
  if (experiment.verdict_arms.empty()) return {experiment.verdict(summary), ""};
  ExperimentSummary judged = summary;
  std::erase_if(judged.arms, [&](const ArmSummary& arm) {
    return std::ranges::find(experiment.verdict_arms, arm.arm) == experiment.verdict_arms.end();
  });
  return {experiment.verdict(judged), ""};
}

std::string with_unit(const ReportedMetric& metric, double value) {
  return fmt::format("{:.{}f}{}{}", value, metric.digits, metric.unit.empty() ? "" : " ", metric.unit);
}

std::string diverged_words(const ArmSummary& arm) {
  return fmt::format("{} diverged in {} of {} seed{} (first at step {})", arm.arm, arm.diverged,
                     arm.values.size(), arm.values.size() == 1 ? "" : "s", arm.diverged_step.value_or(0));
}

std::string against_baseline(const ExperimentSummary& summary, const std::string& arm,
                             const std::string& baseline) {
  const ArmSummary* ours = summary.find(arm);
  const ArmSummary* theirs = summary.find(baseline);
  if (ours == nullptr) return arm + " was not run";
  if (!ours->mean) return diverged_words(*ours);
  std::string text;
  if (theirs == nullptr || !theirs->mean) {
    text = fmt::format("{} ends at {} (no {} to compare with)", arm, with_unit(summary.metric, *ours->mean),
                       baseline);
  } else {
    text = fmt::format(
        "{} ends {} {} ({} against {})", arm, distance(summary.metric, *ours->mean, *theirs->mean), baseline,
        fmt::format("{:.{}f}", *ours->mean, summary.metric.digits), with_unit(summary.metric, *theirs->mean));
  }
  if (ours->diverged > 0) text += "; " + diverged_words(*ours);
  return text;
}

bool within(const ExperimentSummary& summary, const std::string& arm, const std::string& baseline,
            double difference) {
  const ArmSummary* ours = summary.find(arm);
  const ArmSummary* theirs = summary.find(baseline);
  return ours != nullptr && theirs != nullptr && ours->mean && theirs->mean && ours->diverged == 0 &&
         std::fabs(*ours->mean - *theirs->mean) <= difference;
}

}  // namespace halfscope
