// Reads the summaries of runs and takes means and intervals over seeds.
#include "experiments/runner/summarise.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <halfscope/stats/confidence.hpp>

#include "experiments/runner/prediction.hpp"
#include "experiments/runner/run_records.hpp"
#include "experiments/runner/setting_differences.hpp"
#include "experiments/runner/sweep.hpp"
#include "sim/train/rank_gradients.hpp"

namespace halfscope {
namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> optional_mean(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(mean_of(values));
}

/// The numbers under `key`, without those that are null.
std::vector<double> numbers(const std::vector<FinishedRun>& runs, const std::string& key) {
  std::vector<double> values;
  for (const auto& [seed, run, config] : runs) {
    if (run.contains(key) && run[key].is_number()) values.push_back(run[key].get<double>());
  }
  return values;
}

/// The share of the non-zero gradients that `key` counts; empty where none was observed.
std::optional<double> gradient_share(const std::vector<FinishedRun>& runs, const char* key) {
  std::vector<double> shares;
  for (const auto& [seed, run, config] : runs) {
    if (!run.contains("gradients")) continue;
    const Json& gradients = run["gradients"];
    const auto nonzero = gradients.at("nonzero").get<double>();
    if (nonzero > 0) shares.push_back(gradients.at(key).get<double>() / nonzero);
  }
  return optional_mean(shares);
}

std::vector<std::string> overflows(const std::vector<FinishedRun>& runs) {
  for (const auto& [seed, run, config] : runs) {
    if (run.contains("overflows") && !run["overflows"].empty()) {
      return run["overflows"].get<std::vector<std::string>>();
    }
  }
  return {};
}

/// Of the losses behind a model's first; empty where no run has any.
std::optional<double> further_skipped(const std::vector<FinishedRun>& runs) {
  std::vector<double> counts;
  for (const auto& [seed, run, config] : runs) {
    if (!run.contains("further_losses")) continue;
    double sum = 0;
    for (const Json& loss : run["further_losses"]) sum += loss.at("skipped").get<double>();
    counts.push_back(sum);
  }
  return optional_mean(counts);
}

/// Empty where no run has an account of its memory, as those of earlier versions.
std::optional<double> peak_step_bytes(const std::vector<FinishedRun>& runs) {
  std::optional<double> most;
  for (const auto& [seed, run, config] : runs) {
    if (!run.contains("memory")) continue;
    const auto bytes = run["memory"].at("peak_step_bytes").get<double>();
    most = std::max(most.value_or(0), bytes);
  }
  return most;
}

/// Empty where no run has several ranks.
std::optional<AllReduceLosses> all_reduce_losses(const std::vector<FinishedRun>& runs) {
  AllReduceCounters all;
  double steps = 0, stagnated_steps = 0;
  for (const auto& [seed, run, config] : runs) {
    if (!run.contains("all_reduce")) continue;
    all.merge(all_reduce_counters(run["all_reduce"]));
    steps += run["all_reduce"].at("steps").get<double>();
    stagnated_steps += run["all_reduce"].at("stagnated_steps").get<double>();
  }
  if (all.adds == 0) return std::nullopt;
  const auto share = [](std::int64_t part, std::int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  return AllReduceLosses{.ranks = 1 + all.adds / all.elements,
                         .stagnated = share(all.stagnated, all.adds),
                         .flushed = share(all.addends_flushed, all.adds + all.elements),
                         .overflowed = share(all.means_overflowed, all.elements),
                         .stagnated_steps = stagnated_steps / steps};
}

ArmSummary summarise_arm(const std::string& name, const std::vector<FinishedRun>& runs,
                         const std::string& metric) {
  ArmSummary arm{.arm = name,
                 .lost_updates = optional_mean(numbers(runs, "lost_updates")),
                 .flushed = gradient_share(runs, "flushed"),
                 .subnormal = gradient_share(runs, "subnormal"),
                 .overflow = gradient_share(runs, "overflow"),
                 .skipped = optional_mean(numbers(runs, "skipped")),
                 .further_skipped = further_skipped(runs),
                 .first_at_final_scale = optional_mean(numbers(runs, "first_at_final_scale"))};
  for (const double step : numbers(runs, "last_skipped_step")) {
    arm.last_skipped = std::max(arm.last_skipped.value_or(step), step);
  }
  std::vector<double> scales = numbers(runs, "final_scale");
  for (double& scale : scales) scale = std::log2(scale);
  arm.final_scale_log2 = optional_mean(scales);
  std::vector<double> metrics;
  for (const auto& [seed, run, config] : runs) {
    const bool diverged = run["diverged"].get<bool>();
    if (!diverged && run.at(metric).is_number()) {
      metrics.push_back(run[metric].get<double>());
      arm.values.emplace_back(metrics.back());
    } else {
      arm.values.emplace_back();
    }
    if (!diverged) continue;
    ++arm.diverged;
    const auto step = run.at("diverged_step").get<std::int64_t>();
    arm.diverged_step = std::min(arm.diverged_step.value_or(step), step);
  }
  arm.all_reduce = all_reduce_losses(runs);
  arm.overflows = overflows(runs);
  arm.mixed = keys_that_differ(runs);
  if (arm.mixed.empty()) arm.mean = optional_mean(metrics);
  if (arm.mean) arm.accuracy = optional_mean(numbers(runs, "accuracy"));
  if (arm.mean && metrics.size() >= 2) {
    const double half_width = confidence_95(metrics);
    arm.low = *arm.mean - half_width;
    arm.high = *arm.mean + half_width;
  }
  std::vector<double> times = numbers(runs, "seconds_per_step");
  if (!times.empty()) {
    std::sort(times.begin(), times.end());
    arm.seconds_per_step = times[times.size() / 2];
  }
  for (const double bytes : numbers(runs, "peak_device_bytes")) {
    arm.peak_device_bytes = std::max(arm.peak_device_bytes.value_or(0), bytes);
  }
  arm.peak_step_bytes = peak_step_bytes(runs);
  return arm;
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
  std::vector<ArmRuns> runs;
  SweepRuns sweep = read_sweep(folder);
  const auto add_unfinished = [&](const std::vector<UnfinishedRun>& more) {
    summary.unfinished.insert(summary.unfinished.end(), more.begin(), more.end());
  };
  for (const Arm& arm : experiment.arms) {
    runs.push_back(read_runs(folder, arm.name));
    const auto& [finished, unfinished] = runs.back();
    if (!finished.empty()) summary.arms.push_back(summarise_arm(arm.name, finished, experiment.metric.key));
    add_unfinished(unfinished);
    add_unfinished(not_begun(arm.name, sweep[arm.name], runs.back()));
  }
  summary.settings = compare_settings(experiment, runs);
  if (!experiment.predicts_from.empty()) summary.predictions = predict_underflow(experiment, folder);
  if (!experiment.harm_tasks.empty()) summary.harm = judge_predictors(experiment.harm_tasks, folder);
  return summary;
}

}  // namespace halfscope
