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

/// Why runs are not judged; empty where they are.
std::string why_withheld(const ExperimentSummary& summary) {
  if (summary.settings.size == RunSize::smoke) return "runs of smoke size mean nothing";
  const auto trains = [](const SettingDifference& difference) {
    return difference.effect == Effect::training;
  };
  if (std::ranges::any_of(summary.settings.differences, trains))
    return "a verdict is for the experiment's own settings";
  return "";
}

/// The arms that the verdict is about.
ExperimentSummary judged_part(const Experiment& experiment, const ExperimentSummary& summary) {
  ExperimentSummary judged = summary;
  if (experiment.verdict_arms.empty()) return judged;
  std::erase_if(judged.arms, [&](const ArmSummary& arm) {
    return std::ranges::find(experiment.verdict_arms, arm.arm) == experiment.verdict_arms.end();
  });
  return judged;
}

/// How far `ours` is behind `theirs`, as an expectation's tolerance is given.
double behind(const ReportedMetric& metric, double ours, double theirs) {
  const double gap = metric.lower_is_better ? ours - theirs : theirs - ours;
  return metric.comparison == Comparison::ratio ? gap / std::fabs(theirs) : gap;
}

/// The spread of a baseline's seeds as an expectation's tolerance.
std::optional<double> seed_tolerance(const ReportedMetric& metric, const ArmSummary& baseline) {
  const std::optional<double> spread = seed_spread(baseline);
  if (!spread || metric.comparison != Comparison::ratio) return spread;
  return *spread / std::fabs(*baseline.mean);
}

std::optional<bool> holds(const ExperimentSummary& summary, const Expectation& expectation) {
  const ArmSummary* ours = summary.find(expectation.arm);
  const ArmSummary* theirs = summary.find(expectation.baseline);
  if (ours == nullptr || theirs == nullptr || !theirs->mean) return std::nullopt;
  if (!ours->mean && ours->diverged == 0) return std::nullopt;
  const std::optional<double> tolerance = expectation.expected == Expected::within_seeds
                                              ? seed_tolerance(summary.metric, *theirs)
                                              : std::optional(expectation.tolerance);
  if (!tolerance) return std::nullopt;
  const bool as_good =
      ours->diverged == 0 && behind(summary.metric, *ours->mean, *theirs->mean) <= *tolerance;
  return as_good == (expectation.expected != Expected::worse);
}

}  // namespace

Verdict verdict_on(const Experiment& experiment, const ExperimentSummary& summary) {
  if (experiment.verdict == nullptr) return {};
  const std::string withheld = why_withheld(summary);
  if (!withheld.empty()) return {"", withheld};
  return {experiment.verdict(judged_part(experiment, summary)), ""};
}

std::vector<std::optional<bool>> judge_claim(const Experiment& experiment, const ExperimentSummary& summary) {
  std::vector<std::optional<bool>> judged(experiment.claim.expectations.size());
  if (!why_withheld(summary).empty()) return judged;
  const ExperimentSummary part = judged_part(experiment, summary);
  std::ranges::transform(experiment.claim.expectations, judged.begin(),
                         [&](const Expectation& expectation) { return holds(part, expectation); });
  return judged;
}

std::optional<bool> all_hold(const std::vector<std::optional<bool>>& expectations) {
  using Judged = std::optional<bool>;
  if (std::ranges::any_of(expectations, [](const Judged& judged) { return judged == false; })) return false;
  const bool open =
      !std::ranges::all_of(expectations, [](const Judged& judged) { return judged.has_value(); });
  return expectations.empty() || open ? std::nullopt : Judged(true);
}

std::optional<double> seed_spread(const ArmSummary& arm) {
  std::vector<double> finished;
  for (const std::optional<double>& value : arm.values)
    if (value) finished.push_back(*value);
  if (finished.size() < 2) return std::nullopt;
  const auto [lowest, highest] = std::ranges::minmax(finished);
  return highest - lowest;
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
