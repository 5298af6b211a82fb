// Harm of missing loss scaling to ResNet-50, post- and pre-activation, by the weight of the loss.
#include "experiments/ablations/experiments.hpp"

#include <fmt/format.h>

#include <array>

#include "experiments/ablations/loss_scale_arms.hpp"
#include "experiments/ablations/loss_weight_arms.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace resnet_loss_scale {
namespace {

constexpr const char* paper_statement =
    "Table 1: the pre-activation ResNet-50 trains without loss scaling. Of the post-activation one the paper "
    "says nothing; NVIDIA's training script for it (apex, pull request 45) failed at a loss scale of 1 and "
    "trained at 128.";

/// Branches that begin at zero have small gradients; the pre-activation network has none to begin so.
const std::array networks{
    WeighedNetwork{"resnet50", "post-activation", {{"model", "resnet50"}, {"residual_gamma", "0"}}},
    WeighedNetwork{
        "resnet50_preact", "pre-activation", {{"model", "resnet50_preact"}, {"residual_gamma", "1"}}}};

/// Of one image's loss among those of larger batches of larger maps: a batch of 256 with a last map of 7x7 is
/// 49 times ours of 64 with 2x2, and where there are 1,000 classes a logit's gradient is up to a hundredth.
constexpr std::array parts{1, 64, 1024, 4096, 16384};
constexpr int judged_part = 4096;
/// FP32's. SGD's updates are those of a loss of weight 1 where the rate is divided by the weight, bit for
/// bit: the weights are powers of two.
constexpr double learning_rate = 0.05;

constexpr double harm = 3, agreement = 1, seeds_differ = 2;  // points

Settings compensation(const WeighedNetwork& /*network*/, int part) {
  return {{"learning_rate", fmt::format("{}", learning_rate * part)}};
}

std::vector<Arm> arms() {
  const std::vector<int> all(parts.begin(), parts.end());
  return loss_weight_arms(
      {.networks = networks,
       .parts = parts,
       .scales = {{static_scale_arm(1), all}, {static_scale_arm(128), all}, {dynamic_scale_arm(), all}},
       .compensation = compensation});
}

std::vector<Expectation> expectations() {
  const auto& [post, before] = networks;
  const auto at = [](const WeighedNetwork& network, std::string_view scale, Expected expected,
                     double tolerance) {
    return Expectation{loss_weight_arm_name(network, scale, judged_part), fp32_arm_name(network), expected,
                       tolerance};
  };
  return {at(post, "fp16_s1", Expected::worse, harm), at(post, "fp16_s128", Expected::as_good, agreement),
          at(post, "fp16_dynamic", Expected::as_good, agreement),
          at(before, "fp16_s1", Expected::worse, agreement),
          at(before, "fp16_s128", Expected::as_good, seeds_differ)};
}

/// Points that an arm ends below FP32, mean over the seeds; empty where one of both has no mean.
std::optional<double> lost(const ExperimentSummary& summary, const WeighedNetwork& network,
                           std::string_view scale, int part) {
  const ArmSummary *arm = summary.find(loss_weight_arm_name(network, scale, part)),
                   *fp32 = summary.find(fp32_arm_name(network));
  if (arm == nullptr || fp32 == nullptr || !arm->mean || !fp32->mean) return std::nullopt;
  return *fp32->mean - *arm->mean;
}

/// "post-activation without loss scaling: 0.60 at 1, 6.65 at 1/4096"; empty where no arm was run.
std::string losses(const ExperimentSummary& summary, const WeighedNetwork& network, std::string_view scale,
                   std::string_view words) {
  std::string text;
  for (const int part : parts) {
    const std::optional<double> points = lost(summary, network, scale, part);
    if (!points) continue;
    text += fmt::format("{}{:.2f} at {}", text.empty() ? "" : ", ", *points, part_words(part));
  }
  return text.empty() ? "" : fmt::format("{} {}: {}", network.words, words, text);
}

std::string verdict(const ExperimentSummary& summary) {
  std::string text;
  for (const WeighedNetwork& network : networks) {
    for (const auto& [scale, words] : {std::pair{"fp16_s1", "without loss scaling"},
                                       {"fp16_s128", "with a scale of 128"},
                                       {"fp16_dynamic", "with a dynamic one"}}) {
      const std::string line = losses(summary, network, scale, words);
      if (!line.empty())
        text += (text.empty() ? "Points below FP32 by the weight of the loss; " : "; ") + line;
    }
  }
  return text.empty() ? "No arm beside FP32 was run." : text + ".";
}

}  // namespace
}  // namespace resnet_loss_scale

Experiment make_resnet_loss_scale() {
  using namespace resnet_loss_scale;
  const auto& [post, before] = networks;
  return {.name = "resnet-loss-scale",
          .summary =
              "ResNet-50 with its activations behind or before the convolutions, by the weight of its loss",
          .paper = paper_statement,
          .claim =
              {"A ResNet-50 whose loss averages over enough positions needs loss scaling, and 128 is enough: "
               "the post-activation one, and the pre-activation one too.",
               expectations()},
          .settings = {{"dataset", "fashion_mnist"},
                       {"steps", "120"},
                       {"batch", "64"},
                       {"optimizer", "sgd"},
                       {"schedule", "cosine"},
                       {"warmup_steps", "20"}},
          // Three epochs of 60,000 images at the published width.
          .full_settings = {{"width", "1"}, {"batch", "128"}, {"steps", "1407"}},
          .varied = {"model", "policy", "loss_scale", "loss_weight", "learning_rate", "residual_gamma"},
          .arms = arms(),
          .quick_arms = {fp32_arm_name(post), loss_weight_arm_name(post, "fp16_s1", 1),
                         loss_weight_arm_name(post, "fp16_s1", judged_part),
                         loss_weight_arm_name(post, "fp16_s128", judged_part), fp32_arm_name(before),
                         loss_weight_arm_name(before, "fp16_s1", judged_part)},
          .quick_set = QuickSet::left_out,
          .verdict = verdict};
}

}  // namespace halfscope
