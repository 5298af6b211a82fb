// Predictors of harm: six tasks under two optimizers, each trained in FP16 at fourteen loss scales.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "experiments/ablations/detection_loss_scale.hpp"
#include "experiments/ablations/experiments.hpp"
#include "experiments/ablations/language_model.hpp"
#include "experiments/ablations/segmentation_loss_scale.hpp"
#include "experiments/runner/harm_present.hpp"

namespace halfscope {
namespace advice_validity {
namespace {

constexpr const char* paper_statement =
    "Section 3.2 chooses the factor by hand: from 8 for Multibox SSD to 32,768 for others, or so that it "
    "times the "
    "largest gradient stays below 65,504. No rule for the smallest one is given.";

constexpr int first_scale = -10, last_scale = 16, scale_step = 2;  // log2

/// `weight` divides the loss, as averaging over a larger batch does: SGD's learning rate makes up for it.
struct Task {
  std::string_view name;
  Settings (*settings)();
  double sgd_rate;
  LossKind loss = LossKind::plain;
  HarmSet set = HarmSet::fitted;
};

Settings classifier() {
  return {{"model", "cnn_bn"}, {"dataset", "fashion_mnist"}, {"batch", "64"}, {"learning_rate", "1e-3"}};
}

Settings language_model() {
  return with(large_batch_language_model_settings(), {{"batch", "32"}});
}

constexpr std::array tasks{
    Task{"classifier", classifier, 0.05},
    Task{"detector", detection_settings, 10},
    Task{"language_model", language_model, 300, LossKind::log_perplexity},
    Task{"segmentation",
         [] {
           return with(segmentation_settings(), {{"loss_weight", "0.00390625"}});
         },
         30},
    Task{"lstm",
         [] {
           return with(language_model(), {{"model", "lstm_lm"}});
         },
         300, LossKind::log_perplexity, HarmSet::held_out},
    Task{"resnet",
         [] {
           return with(classifier(), {{"model", "resnet18_narrow"}, {"loss_weight", "0.00390625"}});
         },
         12.8, LossKind::plain, HarmSet::held_out},
};

std::string probed_scales() {
  std::string text;
  for (int k = first_scale; k <= last_scale; k += scale_step) {
    text += fmt::format("{}2^{}", text.empty() ? "" : ",", k);
  }
  return text;
}

Settings settings_of(const Task& task, std::string_view optimizer) {
  Settings settings = with(task.settings(), {{"optimizer", std::string(optimizer)},
                                             {"steps", "150"},
                                             {"evaluate_every", "0"},
                                             {"observe_every", "15"},
                                             {"checkpoint_every", "0"}});
  if (optimizer == "sgd") settings.emplace_back("learning_rate", fmt::format("{}", task.sgd_rate));
  return settings;
}

/// Adds the arms of a task under one optimizer.
HarmTask add_arms(const Task& task, std::string_view optimizer, std::vector<Arm>& arms) {
  HarmTask group{.name = fmt::format("{}_{}", task.name, optimizer), .loss = task.loss, .set = task.set};
  const Settings settings = settings_of(task, optimizer);
  group.baseline = group.name + "_fp32";
  arms.push_back(
      {group.baseline, "FP32, with histograms and probed gradients of every scale",
       with(settings, {{"policy", "fp32"}, {"loss_scale", "none"}, {"probe_scales", probed_scales()}})});
  for (int k = first_scale; k <= last_scale; k += scale_step) {
    const std::string scale = fmt::format("{}", std::ldexp(1.0, k));
    group.arms.push_back({k, fmt::format("{}_s{}", group.name, scale)});
    arms.push_back(
        {group.arms.back().name, "FP16 at loss scale " + scale,
         with(settings, {{"policy", "fp16_mixed"}, {"loss_scale", scale}, {"observe_every", "0"}})});
  }
  return group;
}

/// Of the last task: the baseline and three scales.
void add_quick_arms(Experiment& experiment) {
  const HarmTask& task = experiment.harm_tasks.back();
  experiment.quick_arms.push_back(task.baseline);
  for (const ScaledArm& arm : task.arms) {
    if (arm.scale_log2 == -6 || arm.scale_log2 == 2 || arm.scale_log2 == 10) {
      experiment.quick_arms.push_back(arm.name);
    }
  }
}

}  // namespace
}  // namespace advice_validity

Experiment make_advice_validity() {
  using namespace advice_validity;
  Experiment experiment{
      .name = "advice-validity",
      .summary = "predictors of the harm that a loss scale does, against trainings at that scale",
      .paper = paper_statement,
      .claim = {"The histogram of an FP32 run tells which factor is enough."},
      .metric = {.key = "train_loss",
                 .name = "train loss",
                 .unit = "",
                 .comparison = Comparison::ratio,
                 .lower_is_better = true,
                 .digits = 4},
      .settings = {{"schedule", "cosine"},
                   {"warmup_steps", "20"},
                   {"trackers", "cast_statistics"},
                   {"probe_every", "15"}},
      .varied = {"loss_scale"},
      .arms = {},
      .quick_set = QuickSet::left_out,
      .arm_lines = ArmLines::hidden,
      .verdict = harm_verdict};
  for (const Task& task : tasks) {
    for (const std::string_view optimizer : {"adam", "sgd"}) {
      experiment.harm_tasks.push_back(add_arms(task, optimizer, experiment.arms));
      if (optimizer == "adam" && task.set == HarmSet::fitted) add_quick_arms(experiment);
    }
  }
  return experiment;
}

}  // namespace halfscope
