// Reads the records of runs and takes means and intervals over seeds.
#include "experiments/results/summarise.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <halfscope/stats/confidence.hpp>

#include "experiments/results/arm_columns.hpp"
#include "experiments/results/divergence.hpp"
#include "experiments/results/setting_differences.hpp"
#include "experiments/results/sweep_runs.hpp"

namespace halfscope {
namespace {

std::vector<std::string> overflows(const std::vector<FinishedRun>& runs) {
  for (const FinishedRun& run : runs) {
    if (run.summary.contains("overflows") && !run.summary["overflows"].empty())
      return run.summary["overflows"].get<std::vector<std::string>>();
  }
  return {};
}

/// Values, and how the runs without one ended.
void add_values(const std::vector<FinishedRun>& runs, const ReportedMetric& metric, ArmSummary& arm) {
  for (const FinishedRun& run : runs) {
    const RunOutcome outcome = outcome_of(run, metric);
    arm.seeds.push_back(run.seed);
    arm.values.push_back(outcome.value);
    if (outcome.end == RunEnding::broke_down) {
      const auto step = run.summary.at("diverged_step").get<std::int64_t>();
      arm.diverged_step = std::min(arm.diverged_step.value_or(step), step);
    }
    arm.beyond += outcome.end == RunEnding::beyond ? 1 : 0;
    arm.diverged += outcome.end == RunEnding::finished ? 0 : 1;
  }
}

struct Interval {
  double low = 0, high = 0;
};

/// A metric that is compared by ratio has its interval on the logarithm, where that is known.
Interval interval_of(const std::vector<double>& values, double mean, Comparison comparison) {
  const bool on_logarithm =
      comparison == Comparison::ratio && std::ranges::all_of(values, [](double value) { return value > 0; });
  if (!on_logarithm) {
    const double half_width = confidence_95(values);
    return {mean - half_width, mean + half_width};
  }
  std::vector<double> logarithms;
  for (const double value : values) logarithms.push_back(std::log(value));
  const double centre =
      std::accumulate(logarithms.begin(), logarithms.end(), 0.0) / static_cast<double>(logarithms.size());
  const double half_width = confidence_95(logarithms);
  return {std::exp(centre - half_width), std::exp(centre + half_width)};
}

void add_mean(const ReportedMetric& metric, ArmSummary& arm) {
  std::vector<double> values;
  for (const std::optional<double>& value : arm.values)
    if (value) values.push_back(*value);
  if (values.empty() || !arm.mixed.empty()) return;
  arm.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  if (values.size() < 2) return;
  const Interval interval = interval_of(values, *arm.mean, metric.comparison);
  arm.low = interval.low;
  arm.high = interval.high;
}

/// Columns that are known only of runs that have a mean.
void hide_columns(ArmSummary& arm) {
  if (arm.mean) return;
  for (std::size_t i = 0; i < arm.columns.size(); ++i)
    if (arm_columns()[i].key == "accuracy") arm.columns[i].reset();
}

ArmSummary summarise_arm(const Arm& arm, const std::vector<FinishedRun>& runs, const ReportedMetric& metric) {
  ArmSummary summary{.arm = arm.name,
                     .baseline = arm.baseline,
                     .loss_scale = runs.front().text("loss_scale", "none"),
                     .loss_weight = runs.front().number("loss_weight", 1),
                     .in_fp32 = runs.front().is_in_fp32(),
                     .columns = measure_columns(runs),
                     .overflows = overflows(runs),
                     .mixed = keys_that_differ(runs)};
  add_values(runs, metric, summary);
  add_mean(metric, summary);
  hide_columns(summary);
  return summary;
}

/// The seeds of an arm that its sweep has and no folder.
std::vector<UnfinishedRun> not_begun(const std::string& arm, const std::set<std::int64_t>& seeds,
                                     const ArmRuns& found) {
  std::set<std::int64_t> left = seeds;
  for (const FinishedRun& run : found.finished) left.erase(run.seed);
  for (const UnfinishedRun& run : found.unfinished) left.erase(run.seed);
  std::vector<UnfinishedRun> runs;
  for (const std::int64_t seed : left) runs.push_back({arm, seed, not_begun_status});
  return runs;
}

}  // namespace

ExperimentSummary summarise(const Experiment& experiment, const std::filesystem::path& folder) {
  ExperimentSummary summary{.metric = experiment.metric, .arms = {}};
  const RunRecords records(folder);
  std::vector<ArmRuns> runs;
  SweepRuns sweep = read_sweep(folder);
  const auto add_unfinished = [&](const std::vector<UnfinishedRun>& more) {
    summary.unfinished.insert(summary.unfinished.end(), more.begin(), more.end());
  };
  for (const Arm& arm : experiment.arms) {
    runs.push_back(records.of_arm(arm.name));
    const auto& [finished, unfinished] = runs.back();
    if (!finished.empty()) summary.arms.push_back(summarise_arm(arm, finished, experiment.metric));
    add_unfinished(unfinished);
    add_unfinished(not_begun(arm.name, sweep[arm.name], runs.back()));
  }
  summary.settings = compare_settings(experiment, runs);
  return summary;
}

}  // namespace halfscope
