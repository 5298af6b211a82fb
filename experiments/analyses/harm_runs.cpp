// Reads a task's runs from their folders.
#include "experiments/analyses/harm_runs.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include <halfscope/core/error.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/io/json/json_lines.hpp>

#include "experiments/analyses/constant_scale.hpp"
#include "experiments/definition/arm_config.hpp"
#include "experiments/results/run_records.hpp"
#include "sim/train/run_settings.hpp"

namespace halfscope::harm_runs {

namespace fs = std::filesystem;

std::optional<std::optional<double>> final_loss(const fs::path& run) {
  if (!fs::exists(run / "summary.json")) return std::nullopt;
  const Json summary = read_json(run / "summary.json");
  const Json& loss = summary.at("train_loss");
  if (summary.at("diverged").get<bool>() || !loss.is_number()) return std::optional<double>();
  return std::optional(loss.get<double>());
}

double ratio_of(LossKind kind, double loss, double baseline) {
  return kind == LossKind::log_perplexity ? std::exp(loss - baseline) : loss / baseline;
}

std::string seed_folder(std::int64_t seed) {
  return "seed" + std::to_string(seed);
}

std::vector<Baseline> read_baselines(const fs::path& folder, const FloatFormat& format) {
  std::vector<Baseline> baselines;
  for (const auto& [seed, run] : run_folders(folder)) {
    const auto loss = final_loss(run);
    if (loss && *loss) baselines.push_back({seed, **loss, read_watched_steps(run, format)});
  }
  return baselines;
}

TaskArms arms_of(const Experiment& experiment, const HarmTask& task) {
  TaskArms arms;
  for (const Arm& arm : experiment.arms) {
    if (arm.baseline != task.baseline) continue;
    const TrainConfig config = arm_config(experiment, arm, RunSize::small);
    const FloatFormat format = parsed(config).policy.quantizer(Role::activation_gradient).format;
    const bool is_first = arms.constant.empty() && arms.scalers.empty();
    if (!is_first && format != arms.format)
      throw InvalidArgument(
          fmt::format("task {}: arm {} casts activation gradients to {}, the arms before it to {}", task.name,
                      arm.name, to_string(format), to_string(arms.format)));
    arms.format = format;
    if (const auto scale_log2 = constant_scale_log2(config.loss_scale))
      arms.constant.push_back({*scale_log2, arm.name});
    else
      arms.scalers.push_back(arm.name);
  }
  return arms;
}

}  // namespace halfscope::harm_runs
