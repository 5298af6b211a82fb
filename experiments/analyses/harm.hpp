// Predictors of harm: numbers of an FP32 run that tell which loss scales do harm, against trainings at them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <halfscope/core/names.hpp>

#include "experiments/results/judgement.hpp"

namespace halfscope {

/// A training is harmed where its loss ends more than this share above that of FP32 with the same seed.
inline constexpr double harmful = usual_margin;

/// One training at a constant loss scale beside the same seed's FP32 run.
struct HarmTraining {
  std::string task;
  HarmSet set = HarmSet::fitted;
  std::int64_t seed = 0;
  int scale_log2 = 0;
  std::optional<double> loss_ratio{};  ///< to FP32's; empty where it diverged, which overflow does
  std::vector<double>
      predictors{};  ///< in the order of HarmEvidence::predictors; infinite where gradients overflow

  [[nodiscard]] bool diverged() const { return !loss_ratio; }
  [[nodiscard]] bool harmed() const { return diverged() || *loss_ratio > 1 + harmful; }
};

/// One training under a scaler that moves its scale, beside the same seed's FP32 run.
struct ScalerTraining {
  std::string task, arm;
  std::int64_t seed = 0;
  std::optional<double> loss_ratio{};  ///< to FP32's; empty where it diverged

  [[nodiscard]] bool harmed() const { return !loss_ratio || *loss_ratio > 1 + harmful; }
};

/// A predictor's value over the watched steps of the FP32 run: the first step's, or the largest or the mean
/// of all.
enum class PredictorSteps : std::uint8_t { first, all, mean };
template <>
inline constexpr std::array<std::string_view, 3> enum_names<PredictorSteps>{"first", "all", "mean"};

/// Trainings that a threshold gets right: harmed above it, unharmed up to it.
struct RightCount {
  std::int64_t right = 0;
  std::int64_t total = 0;
};

/// How well a predictor tells harm by underflow: trainings that diverged are left out. The threshold is right
/// most often on the fitted tasks; `low` and `high` are its 95 % interval over resampled tasks.
struct PredictorResult {
  std::string name;
  PredictorSteps steps{};
  double threshold = 0, low = 0, high = 0;
  RightCount fitted{}, held_out{};
};

/// The advisor's answer from a task's FP32 runs, all seeds and watched steps, beside the training at the
/// largest scale that was trained and is not above it.
struct TaskAdvice {
  std::string task;
  std::string format{};  ///< to which the task's arms cast activation gradients
  /// log2; no single scale fits where `enough_from` is above `overflow_beyond`, and `use` fits the most
  /// tensors.
  int enough_from = 0, use = 0, overflow_beyond = 0;
  std::optional<int> trained_at{};     ///< log2
  std::optional<double> loss_ratio{};  ///< the largest of its seeds; empty where one diverged
  double fp32_spread = 1;              ///< largest loss over the smallest of FP32's seeds
};

struct HarmEvidence {
  std::vector<HarmTraining> trainings{};
  std::vector<ScalerTraining> scalers{};
  std::vector<PredictorResult> predictors{};  ///< with numbers in the FP32 records
  /// Trainings that the advisor's rule, at its tolerance, gets right; those that diverged are counted too.
  RightCount advisor{}, advisor_held_out{};
  std::vector<TaskAdvice> advice{};
};

/// Reads `folder` = DIR/<experiment> of the experiment's harm_tasks. Trainings that are not done, and those
/// without records of their FP32 run, are left out.
[[nodiscard]] HarmEvidence judge_predictors(const Experiment& experiment,
                                            const std::filesystem::path& folder);

}  // namespace halfscope
