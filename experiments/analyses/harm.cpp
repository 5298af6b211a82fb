// Lays trainings beside predictors, and chooses each predictor's threshold.
#include "experiments/analyses/harm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>

#include <halfscope/core/random.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/scaling/advisor.hpp>

#include "experiments/analyses/harm_predictors.hpp"
#include "experiments/analyses/harm_runs.hpp"

namespace halfscope {
namespace {

namespace fs = std::filesystem;
using harm_runs::Baseline, harm_runs::ScaledArm, harm_runs::TaskArms;

constexpr std::array predictor_steps{PredictorSteps::first, PredictorSteps::all, PredictorSteps::mean};

/// Empty where no step tells.
std::optional<double> value_over(const std::vector<WatchedStep>& steps, PredictorSteps which,
                                 Predictor predict, int scale_log2) {
  const std::size_t count =
      which == PredictorSteps::first ? std::min<std::size_t>(1, steps.size()) : steps.size();
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<double> value = predict(steps[i], scale_log2);
    if (value) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  if (which != PredictorSteps::mean) return *std::ranges::max_element(values);
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Every predictor's value; fewer where the records lack one.
std::vector<double> predictors_at(const std::vector<WatchedStep>& steps, int scale_log2) {
  std::vector<double> values;
  for (const PredictorSteps which : predictor_steps) {
    for (const PredictorEntry& entry : predictor_table) {
      if (const auto value = value_over(steps, which, entry.predict, scale_log2)) values.push_back(*value);
    }
  }
  return values;
}

struct TaskRuns {
  const HarmTask& task;
  TaskArms arms{};
  std::vector<Baseline> baselines{};
};

/// The tasks with a finished FP32 run.
std::vector<TaskRuns> read_tasks(const Experiment& experiment, const fs::path& folder) {
  std::vector<TaskRuns> tasks;
  for (const HarmTask& task : experiment.harm_tasks) {
    TaskArms arms = harm_runs::arms_of(experiment, task);
    auto baselines = harm_runs::read_baselines(folder / task.baseline, arms.format);
    if (!baselines.empty()) tasks.push_back({task, std::move(arms), std::move(baselines)});
  }
  return tasks;
}

/// Whether a step of an FP32 run has what the predictor needs.
bool tells(const TaskRuns& runs, Predictor predict) {
  for (const Baseline& baseline : runs.baselines)
    for (const WatchedStep& step : baseline.steps)
      for (const ScaledArm& arm : runs.arms.constant)
        if (predict(step, arm.scale_log2)) return true;
  return false;
}

std::vector<PredictorResult> recorded_predictors(const std::vector<TaskRuns>& tasks) {
  std::vector<PredictorResult> predictors;
  for (const PredictorSteps steps : predictor_steps)
    for (const PredictorEntry& entry : predictor_table)
      if (std::ranges::any_of(tasks, [&](const TaskRuns& runs) { return tells(runs, entry.predict); }))
        predictors.push_back({.name = std::string(entry.name), .steps = steps});
  return predictors;
}

void add_scaler_trainings(const TaskRuns& runs, const fs::path& folder, const Baseline& baseline,
                          std::vector<ScalerTraining>& trainings) {
  for (const std::string& arm : runs.arms.scalers) {
    const auto loss = harm_runs::final_loss(folder / arm / harm_runs::seed_folder(baseline.seed));
    if (!loss) continue;
    ScalerTraining& training = trainings.emplace_back(ScalerTraining{runs.task.name, arm, baseline.seed});
    if (*loss) training.loss_ratio = harm_runs::ratio_of(runs.task.loss, **loss, baseline.loss);
  }
}

void add_trainings(const TaskRuns& runs, const fs::path& folder, const Baseline& baseline,
                   HarmEvidence& evidence) {
  const HarmTask& task = runs.task;
  for (const ScaledArm& arm : runs.arms.constant) {
    const auto loss = harm_runs::final_loss(folder / arm.name / harm_runs::seed_folder(baseline.seed));
    if (!loss) continue;
    HarmTraining training{.task = task.name,
                          .set = task.set,
                          .seed = baseline.seed,
                          .scale_log2 = arm.scale_log2,
                          .predictors = predictors_at(baseline.steps, arm.scale_log2)};
    if (*loss) training.loss_ratio = harm_runs::ratio_of(task.loss, **loss, baseline.loss);
    if (training.predictors.size() == evidence.predictors.size()) {
      evidence.trainings.push_back(std::move(training));
    }
  }
}

/// The fits of a task's gradients, each over all steps and seeds.
std::vector<TensorFit> fits_of(const std::vector<Baseline>& baselines) {
  std::vector<std::span<const WatchedStep>> runs;
  for (const Baseline& baseline : baselines) runs.emplace_back(baseline.steps);
  return fits_over(runs);
}

/// The scale that is enough for every tensor, and the largest at which none overflows, whether or not the
/// first is below the second.
ScaleWindow edges_of(const std::vector<TensorFit>& fits) {
  std::optional<int> low;
  int high = largest_scale_log2;
  for (const TensorFit& fit : fits) {
    if (fit.any_scale) continue;
    low = std::max(low.value_or(fit.underflow_low), fit.underflow_low);
    high = std::min(high, fit.overflow_high);
  }
  return {low.value_or(high), high};
}

/// Fills in the training that the advice is tried on.
void try_advice(const std::vector<HarmTraining>& trainings, TaskAdvice& advice) {
  const auto is_of_task = [&](const HarmTraining& training) { return training.task == advice.task; };
  for (const HarmTraining& training : trainings) {
    if (!is_of_task(training) || training.scale_log2 > advice.use) continue;
    advice.trained_at = std::max(advice.trained_at.value_or(training.scale_log2), training.scale_log2);
  }
  bool diverged = false;
  double worst = 0;
  for (const HarmTraining& training : trainings) {
    if (!is_of_task(training) || training.scale_log2 != advice.trained_at) continue;
    diverged = diverged || training.diverged();
    worst = std::max(worst, training.loss_ratio.value_or(0));
  }
  if (advice.trained_at && !diverged) advice.loss_ratio = worst;
}

/// Nothing where the advisor names no scale.
std::optional<TaskAdvice> advise_task(const TaskRuns& runs, const std::vector<HarmTraining>& trainings) {
  const std::vector<TensorFit> fits = fits_of(runs.baselines);
  const Advice advice = advise(fits, runs.arms.format);
  if (!advice.recommended) return std::nullopt;
  const ScaleWindow edges = edges_of(fits);
  TaskAdvice answer{.task = runs.task.name,
                    .format = to_string(runs.arms.format),
                    .enough_from = edges.low,
                    .use = *advice.recommended,
                    .overflow_beyond = edges.high};
  const auto [low, high] = std::ranges::minmax_element(runs.baselines, {}, &Baseline::loss);
  answer.fp32_spread = harm_runs::ratio_of(runs.task.loss, high->loss, low->loss);
  try_advice(trainings, answer);
  return answer;
}

/// A predictor's value for a training, and whether the training was harmed.
struct Point {
  double value = 0;
  bool harmed = false;
};

RightCount count_right(const std::vector<Point>& points, double threshold) {
  RightCount count{.total = static_cast<std::int64_t>(points.size())};
  for (const Point& point : points) count.right += (point.value > threshold) == point.harmed ? 1 : 0;
  return count;
}

/// Between the two neighbouring values at which most points are right: of several such places the widest, as
/// a ratio.
double best_threshold(std::vector<Point> points) {
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.value < b.value; });
  std::int64_t right =
      std::count_if(points.begin(), points.end(), [](const Point& point) { return point.harmed; });
  std::int64_t most = -1;
  double threshold = 0, widest = 0;
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    right += points[i].harmed ? -1 : 1;
    const double below = points[i].value, above = points[i + 1].value;
    if (below == above || below <= 0) continue;
    const double width = std::isfinite(above) ? above / below : 1;
    if (right < most || (right == most && width <= widest)) continue;
    most = right;
    widest = width;
    threshold = std::isfinite(above) ? std::sqrt(below * above) : below;
  }
  return threshold;
}

/// The fitted tasks' points, a list per task: trainings of one task resemble each other.
using PointsByTask = std::vector<std::vector<Point>>;

std::vector<Point> together(const PointsByTask& tasks, const std::vector<std::size_t>& chosen) {
  std::vector<Point> points;
  for (const std::size_t task : chosen) points.insert(points.end(), tasks[task].begin(), tasks[task].end());
  return points;
}

/// Thresholds of tasks drawn with replacement, as often as there are tasks; sorted.
std::vector<double> resampled_thresholds(const PointsByTask& tasks) {
  constexpr std::size_t draws = 1000;
  std::vector<double> thresholds;
  thresholds.reserve(draws);
  const RandomStream stream;
  std::uint64_t drawn = 0;
  for (std::size_t i = 0; i < draws; ++i) {
    std::vector<std::size_t> chosen(tasks.size());
    for (std::size_t& task : chosen) task = stream.bits(drawn++) % tasks.size();
    thresholds.push_back(best_threshold(together(tasks, chosen)));
  }
  std::sort(thresholds.begin(), thresholds.end());
  return thresholds;
}

PointsByTask points_of(const HarmEvidence& evidence, HarmSet set, std::size_t predictor) {
  PointsByTask tasks;
  std::string task;
  for (const HarmTraining& training : evidence.trainings) {
    if (training.set != set || training.diverged()) continue;
    if (tasks.empty() || training.task != task) tasks.emplace_back();
    task = training.task;
    tasks.back().push_back({training.predictors[predictor], training.harmed()});
  }
  return tasks;
}

std::vector<std::size_t> all_of(const PointsByTask& tasks) {
  std::vector<std::size_t> indices(tasks.size());
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = i;
  return indices;
}

void judge(PredictorResult& result, const HarmEvidence& evidence, std::size_t predictor) {
  const PointsByTask fitted = points_of(evidence, HarmSet::fitted, predictor);
  const PointsByTask held_out = points_of(evidence, HarmSet::held_out, predictor);
  if (fitted.empty()) return;
  const std::vector<Point> points = together(fitted, all_of(fitted));
  result.threshold = best_threshold(points);
  const std::vector<double> thresholds = resampled_thresholds(fitted);
  result.low = thresholds[thresholds.size() / 40];
  result.high = thresholds[thresholds.size() - 1 - thresholds.size() / 40];
  result.fitted = count_right(points, result.threshold);
  result.held_out = count_right(together(held_out, all_of(held_out)), result.threshold);
}

/// Harm is what underflow or overflow brings: above the tolerance, or infinite.
RightCount count_advisor(const HarmEvidence& evidence, HarmSet set) {
  const auto rule = std::find_if(
      evidence.predictors.begin(), evidence.predictors.end(),
      [](const PredictorResult& p) { return p.name == advisor_predictor && p.steps == PredictorSteps::all; });
  const auto index = static_cast<std::size_t>(rule - evidence.predictors.begin());
  std::vector<Point> points;
  for (const HarmTraining& training : evidence.trainings) {
    if (training.set == set) points.push_back({training.predictors[index], training.harmed()});
  }
  return count_right(points, AdvisorOptions{}.tolerance);
}

}  // namespace

HarmEvidence judge_predictors(const Experiment& experiment, const fs::path& folder) {
  const std::vector<TaskRuns> tasks = read_tasks(experiment, folder);
  HarmEvidence evidence{.predictors = recorded_predictors(tasks)};
  for (const TaskRuns& runs : tasks) {
    for (const Baseline& baseline : runs.baselines) {
      add_trainings(runs, folder, baseline, evidence);
      add_scaler_trainings(runs, folder, baseline, evidence.scalers);
    }
    if (auto advice = advise_task(runs, evidence.trainings)) evidence.advice.push_back(std::move(*advice));
  }
  evidence.advisor = count_advisor(evidence, HarmSet::fitted);
  evidence.advisor_held_out = count_advisor(evidence, HarmSet::held_out);
  for (std::size_t i = 0; i < evidence.predictors.size(); ++i) judge(evidence.predictors[i], evidence, i);
  return evidence;
}

}  // namespace halfscope
