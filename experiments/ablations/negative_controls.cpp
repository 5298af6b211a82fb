// Four tasks, each in FP32 and in FP16 without loss scaling.
#include "experiments/ablations/experiments.hpp"

#include <fmt/format.h>

#include <array>

#include "experiments/ablations/detection_loss_scale.hpp"
#include "experiments/ablations/language_model.hpp"
#include "experiments/ablations/segmentation_loss_scale.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace negative_controls {
namespace {

constexpr const char* paper_statement =
    "Section 3.2, Table 1: the image classifiers train in mixed precision without loss scaling; only "
    "networks "
    "whose gradients are too small for FP16 need it.";

struct Task {
  std::string_view name;
  std::string_view summary;
  Settings (*settings)();
};

constexpr std::array tasks{
    Task{"classifier", "convolutional classifier, loss averaged over 64 images",
         [] {
           return Settings{{"model", "cnn_bn"},
                           {"dataset", "fashion_mnist"},
                           {"steps", "200"},
                           {"batch", "64"},
                           {"learning_rate", "1e-3"}};
         }},
    Task{"detector", "single-shot detector, loss averaged over 15,360 anchors",
         [] {
           return with(detection_settings(),
                       {{"steps", "200"}, {"loss_weight", "1"}, {"evaluate_every", "0"}});
         }},
    Task{"language_model", "GRU language model, loss averaged over 2,048 words", language_model_settings},
    Task{"segmentation", "segmentation, loss averaged over 65,536 pixels", segmentation_settings},
};

/// No harm: the training loss stays within 3 %.
constexpr double harmless = 0.03;

Arm make_arm(const Task& task, std::string_view suffix, std::string_view precision, Settings settings) {
  return {fmt::format("{}_{}", task.name, suffix), fmt::format("{}; {}", task.summary, precision),
          with(std::move(settings), task.settings())};
}

std::vector<Expectation> expectations() {
  std::vector<Expectation> all;
  for (const Task& task : tasks) {
    all.push_back({fmt::format("{}_fp16_s1", task.name), fmt::format("{}_fp32", task.name), Expected::as_good,
                   harmless});
  }
  return all;
}

std::string verdict(const ExperimentSummary& summary) {
  std::string unharmed, harmed;
  for (const Task& task : tasks) {
    const std::string fp32 = fmt::format("{}_fp32", task.name), fp16 = fmt::format("{}_fp16_s1", task.name);
    const ArmSummary* baseline = summary.find(fp32);
    const ArmSummary* arm = summary.find(fp16);
    if (baseline == nullptr || !baseline->mean || arm == nullptr) continue;
    std::string& list = within(summary, fp16, fp32, harmless * *baseline->mean) ? unharmed : harmed;
    list += list.empty() ? "" : "; ";
    list += against_baseline(summary, fp16, fp32);
    if (arm->flushed) list += fmt::format(", with {:.0f} % of its gradients flushed", 100 * *arm->flushed);
  }
  std::string text;
  if (!unharmed.empty()) {
    text = fmt::format(
        "FP16 without loss scaling does no harm here: {}. These losses average over few positions, "
        "so that the gradients that matter lie above 2^-24; a share of flushed gradients alone "
        "does not tell, since the smallest ones move the weights least.",
        unharmed);
  }
  if (!harmed.empty()) text += fmt::format("{}Harmed by more than 3 %: {}.", text.empty() ? "" : " ", harmed);
  return text.empty() ? "No pair of arms was run." : text;
}

}  // namespace
}  // namespace negative_controls

Experiment make_negative_controls() {
  using namespace negative_controls;
  std::vector<Arm> arms;
  for (const Task& task : tasks) {
    arms.push_back(make_arm(task, "fp32", "FP32", {{"policy", "fp32"}}));
    arms.push_back(make_arm(task, "fp16_s1", "FP16 without loss scaling",
                            {{"policy", "fp16_mixed"}, {"loss_scale", "1"}}));
  }
  return {
      .name = "negative-controls",
      .summary = "networks that FP16 without loss scaling does no harm",
      .paper = paper_statement,
      .claim = {"Networks whose gradients are large enough for FP16 need no loss scaling.", expectations()},
      .metric = {.key = "train_loss",
                 .name = "train loss",
                 .unit = "",
                 .comparison = Comparison::ratio,
                 .lower_is_better = true,
                 .digits = 4},
      .settings = {{"optimizer", "adam"}, {"schedule", "cosine"}, {"observe_every", "25"}},
      .varied = {"policy"},
      .arms = std::move(arms),
      .verdict = verdict};
}

}  // namespace halfscope
