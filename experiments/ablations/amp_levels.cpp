// Automatic mixed precision as PyTorch and NVIDIA Apex have it, beside FP32 and the paper's recipe.
#include "experiments/ablations/experiments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "experiments/ablations/detection_loss_scale.hpp"
#include "experiments/ablations/language_model.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace amp_levels {
namespace {

constexpr const char* paper_statement =
    "No such experiment: the paper's recipe is close to Apex's O2. O3 is FP16 without a master copy, whose "
    "harm section 3.1 shows.";

struct Task {
  std::string_view name, summary;
  Settings (*settings)();
};

constexpr std::array tasks{
    Task{"detector", "SSD",
         [] {
           return with(detection_settings(),
                       {{"steps", "200"}, {"loss_weight", "1"}, {"evaluate_every", "0"}});
         }},
    Task{"language_model", "GRU language model", language_model_settings},
    Task{"resnet50", "ResNet-50",
         [] {
           return Settings{{"model", "resnet50"}, {"dataset", "fashion_mnist"}, {"optimizer", "sgd"},
                           {"steps", "100"},      {"learning_rate", "0.05"},    {"residual_gamma", "0"},
                           {"batch", "64"},       {"schedule", "cosine"}};
         }},
};

struct Level {
  std::string_view name, summary, policy, loss_scale;
};

constexpr std::array levels{
    Level{"fp32", "FP32", "fp32", "none"},
    Level{"mixed", "FP16 tensors, FP32 master weights, dynamic loss scale", "fp16_mixed", "dynamic"},
    Level{"autocast", "PyTorch's autocast and its GradScaler", "autocast_cuda", "dynamic"},
    Level{"o1", "Apex O1", "apex_o1", "apex_amp"},
    Level{"o2", "Apex O2", "apex_o2", "apex_amp"},
    Level{"o3", "Apex O3, no loss scale", "apex_o3", "none"},
};

/// Of FP32's training loss, what separates harm from the noise between roundings.
constexpr double close = 0.05;

std::string arm_name(const Task& task, const Level& level) {
  return fmt::format("{}_{}", task.name, level.name);
}

std::vector<Arm> arms() {
  std::vector<Arm> all;
  for (const Task& task : tasks) {
    for (const Level& level : levels) {
      all.push_back(
          {arm_name(task, level), fmt::format("{}; {}", task.summary, level.summary),
           with({{"policy", std::string(level.policy)}, {"loss_scale", std::string(level.loss_scale)}},
                task.settings())});
    }
  }
  return all;
}

std::vector<Expectation> expectations() {
  std::vector<Expectation> all;
  for (const Task& task : tasks) {
    for (const Level& level : levels) {
      if (level.name == "fp32" || level.name == "o3") continue;
      all.push_back({arm_name(task, level), arm_name(task, levels[0]), Expected::as_good, close});
    }
  }
  return all;
}

/// Of a level on every task, beside FP32.
std::string sentence(const ExperimentSummary& summary, const Level& level) {
  std::vector<std::string> beside;
  for (const Task& task : tasks) {
    if (summary.find(arm_name(task, level)) == nullptr) continue;
    beside.push_back(against_baseline(summary, arm_name(task, level), arm_name(task, levels[0])));
  }
  return beside.empty() ? "" : fmt::format("{}: {}.", level.summary, fmt::join(beside, "; "));
}

std::string verdict(const ExperimentSummary& summary) {
  std::vector<std::string> sentences;
  for (const Level& level : levels) {
    if (level.name == "fp32") continue;
    std::string text = sentence(summary, level);
    if (!text.empty()) sentences.push_back(std::move(text));
  }
  return sentences.empty() ? "No level was run beside FP32." : fmt::format("{}", fmt::join(sentences, " "));
}

}  // namespace
}  // namespace amp_levels

Experiment make_amp_levels() {
  using namespace amp_levels;
  return {.name = "amp-levels",
          .summary = "a detector, a language model and ResNet-50 under autocast and under Apex O1, O2 and O3",
          .paper = paper_statement,
          .claim = {"Autocast, O1, O2 and the paper's recipe train as FP32 does.", expectations()},
          .metric = {.key = "train_loss",
                     .name = "train loss",
                     .unit = "",
                     .comparison = Comparison::ratio,
                     .lower_is_better = true,
                     .digits = 4},
          .settings = {{"observe_every", "25"}},
          .varied = {"policy", "loss_scale"},
          .arms = arms(),
          .quick_arms = {"language_model_fp32", "language_model_autocast", "language_model_o1",
                         "language_model_o2", "language_model_o3"},
          .quick_set = QuickSet::left_out,
          .scale_columns = ScaleColumns::shown,
          .memory_column = MemoryColumn::shown,
          .verdict = verdict};
}

}  // namespace halfscope
