// The runs of a task by which predictors of harm are judged: FP32's, and those at loss scales.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/analyses/harm_predictors.hpp"
#include "experiments/definition/experiment.hpp"

namespace halfscope::harm_runs {

/// An FP32 run.
struct Baseline {
  std::int64_t seed = 0;
  double loss = 0;
  std::vector<WatchedStep> steps;
};

/// An arm that trains at the loss scale 2^scale_log2.
struct ScaledArm {
  int scale_log2 = 0;
  std::string name;
};

/// Training loss at the end of a run; empty where it diverged. Nothing where it is not done.
[[nodiscard]] std::optional<std::optional<double>> final_loss(const std::filesystem::path& run);

/// The loss beside the baseline's, as a ratio.
[[nodiscard]] double ratio_of(LossKind kind, double loss, double baseline);

[[nodiscard]] std::string seed_folder(std::int64_t seed);

/// Arms that are compared with a task's baseline.
struct TaskArms {
  FloatFormat format = fp16;           ///< to which they cast activation gradients
  std::vector<ScaledArm> constant{};   ///< at constant scales
  std::vector<std::string> scalers{};  ///< names of those whose scale moves
};

/// Throws InvalidArgument where they cast activation gradients to several formats.
[[nodiscard]] TaskArms arms_of(const Experiment& experiment, const HarmTask& task);

/// The finished FP32 runs in the folder of their arm, with gradients as they are cast to `format`.
[[nodiscard]] std::vector<Baseline> read_baselines(const std::filesystem::path& folder,
                                                   const FloatFormat& format);

}  // namespace halfscope::harm_runs
