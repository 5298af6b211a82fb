// Compares means with tolerances.
#include "experiments/results/as_good.hpp"

#include <algorithm>
#include <cmath>

namespace halfscope {
namespace {

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

/// As an expectation's tolerance.
double usual_tolerance(const ReportedMetric& metric, const ArmSummary& baseline) {
  const double size = std::fabs(*baseline.mean);
  const double reach = baseline.high ? *baseline.high - *baseline.mean : 0;
  const double tolerance = std::min(std::max(least_tolerated * size, reach), most_tolerated * size);
  return metric.comparison == Comparison::ratio ? tolerance / size : tolerance;
}

}  // namespace

std::optional<bool> holds(const ExperimentSummary& summary, const Expectation& expectation) {
  const ArmSummary* ours = summary.find(expectation.arm);
  const ArmSummary* theirs = summary.find(expectation.baseline);
  if (ours == nullptr || theirs == nullptr || !theirs->mean) return std::nullopt;
  if (!ours->mean && ours->diverged == 0) return std::nullopt;
  const std::optional<double> tolerance = expectation.expected == Expected::within_seeds
                                              ? seed_tolerance(summary.metric, *theirs)
                                              : std::optional(expectation.tolerance);
  if (!tolerance) return std::nullopt;
  const bool is_as_good =
      ours->diverged == 0 && behind(summary.metric, *ours->mean, *theirs->mean) <= *tolerance;
  return is_as_good == (expectation.expected != Expected::worse);
}

std::optional<bool> as_good(const Experiment& experiment, const ExperimentSummary& summary,
                            const ArmSummary& arm) {
  const ArmSummary* baseline = summary.find(arm.baseline);
  if (baseline == nullptr || !baseline->mean) return std::nullopt;
  Expectation expectation{arm.arm, arm.baseline, Expected::as_good,
                          usual_tolerance(summary.metric, *baseline)};
  for (const Expectation& claimed : experiment.claim.expectations) {
    if (claimed.arm != arm.arm || claimed.baseline != arm.baseline) continue;
    expectation.tolerance = claimed.tolerance;
    if (claimed.expected == Expected::within_seeds) expectation.expected = Expected::within_seeds;
  }
  return holds(summary, expectation);
}

std::optional<double> seed_spread(const ArmSummary& arm) {
  std::vector<double> finished;
  for (const std::optional<double>& value : arm.values)
    if (value) finished.push_back(*value);
  if (finished.size() < 2) return std::nullopt;
  const auto [lowest, highest] = std::ranges::minmax(finished);
  return highest - lowest;
}

}  // namespace halfscope
