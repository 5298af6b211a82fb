// Compares intervals with margins.
#include "experiments/results/judgement.hpp"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>

namespace halfscope {
namespace {

/// Whether `alone` of `seeds` are too many for two arms that diverge equally often. With the chance p of
/// each, one diverges alone with p (1 - p), which is at most 1/4.
bool more_often(std::int64_t alone, std::int64_t seeds) {
  if (alone == 0) return false;
  const boost::math::binomial chance(static_cast<double>(seeds), 0.25);
  return boost::math::cdf(boost::math::complement(chance, static_cast<double>(alone - 1))) <= 0.025;
}

Judgement judge_as_good(const Difference& difference, double margin) {
  if (more_often(difference.arm_diverged_alone, difference.seeds) ||
      more_often(difference.baseline_diverged_alone, difference.seeds))
    return Judgement::does_not_hold;
  if (!difference.low) return Judgement::undecided;
  if (*difference.low > margin || *difference.high < -margin) return Judgement::does_not_hold;
  const bool all_finished = difference.arm_diverged_alone + difference.baseline_diverged_alone == 0;
  const bool within = *difference.low >= -margin && *difference.high <= margin;
  return all_finished && within ? Judgement::holds : Judgement::undecided;
}

Judgement judge_worse(const Difference& difference, double margin) {
  const bool lies_beyond = difference.low && *difference.low > margin;
  const bool lies_before = difference.low && *difference.high <= margin;
  const bool for_it = more_often(difference.arm_diverged_alone, difference.seeds) ||
                      (lies_beyond && difference.baseline_diverged_alone == 0);
  const bool against_it = more_often(difference.baseline_diverged_alone, difference.seeds) ||
                          (lies_before && difference.arm_diverged_alone == 0);
  if (for_it == against_it) return Judgement::undecided;
  return for_it ? Judgement::holds : Judgement::does_not_hold;
}

/// The difference with the two arms in each other's place.
Difference turned(Difference difference) {
  std::swap(difference.arm_diverged_alone, difference.baseline_diverged_alone);
  if (!difference.low) return difference;
  difference.behind = -*difference.behind;
  const double low = *difference.low;
  difference.low = -*difference.high;
  difference.high = -low;
  return difference;
}

/// The margin of an arm without a claim, in the metric's unit or as a share.
double margin_without_claim(const ReportedMetric& metric, const ArmSummary& baseline) {
  if (metric.comparison == Comparison::ratio || !baseline.mean) return usual_margin;
  return usual_margin * std::fabs(*baseline.mean);
}

}  // namespace

std::string in_words(Judgement judgement) {
  std::string words(name_of(judgement));
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::optional<bool> decided(Judgement judgement) {
  if (judgement == Judgement::holds) return true;
  return judgement == Judgement::does_not_hold ? std::optional(false) : std::nullopt;
}

Judgement judge(const Difference& difference, Expected expected, double margin) {
  if (difference.seeds < 2) return Judgement::not_judged;
  if (expected == Expected::as_good) return judge_as_good(difference, margin);
  return judge_worse(expected == Expected::worse ? difference : turned(difference), margin);
}

Judgement judge(const ExperimentSummary& summary, const Expectation& expectation) {
  const ArmSummary* arm = summary.find(expectation.arm);
  const ArmSummary* baseline = summary.find(expectation.baseline);
  if (arm == nullptr || baseline == nullptr) return Judgement::not_judged;
  return judge(difference_of(summary.metric, *arm, *baseline), expectation.expected, expectation.margin);
}

Judgement together(const std::vector<Judgement>& expectations) {
  if (expectations.empty()) return Judgement::not_judged;
  for (const Judgement one : {Judgement::does_not_hold, Judgement::not_judged, Judgement::undecided})
    if (std::ranges::find(expectations, one) != expectations.end()) return one;
  return Judgement::holds;
}

std::optional<bool> as_good(const Experiment& experiment, const ExperimentSummary& summary,
                            const ArmSummary& arm) {
  const ArmSummary* baseline = summary.find(arm.baseline);
  if (baseline == nullptr) return std::nullopt;
  double margin = margin_without_claim(summary.metric, *baseline);
  for (const Expectation& claimed : experiment.claim.expectations)
    if (claimed.arm == arm.arm && claimed.baseline == arm.baseline && claimed.expected == Expected::as_good)
      margin = claimed.margin;
  const std::optional<bool> worse =
      decided(judge(difference_of(summary.metric, arm, *baseline), Expected::worse, margin));
  return worse ? std::optional(!*worse) : std::nullopt;
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
