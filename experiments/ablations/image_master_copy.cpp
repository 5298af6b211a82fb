// The master-copy ablation on two of the paper's image classifiers.
#include "experiments/ablations/experiments.hpp"

#include <fmt/format.h>

#include <array>

#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace image_master_copy {
namespace {

constexpr const char* paper_statement =
    "Section 3.1: updates become zero where they are more than 2,048 times smaller than their weight; an "
    "FP32 "
    "master copy keeps them. Table 1: AlexNet and VGG-D train in mixed precision, with one, as in FP32.";

struct Network {
  std::string_view name;
  std::string_view words;
};
constexpr std::array networks{Network{"alexnet", "AlexNet"}, Network{"vgg_d", "VGG-D"}};

/// Points that the accuracy falls by at least without a master copy, and at most with one.
constexpr double harm = 8, agreement = 0.5;

std::string arm_name(const Network& network, std::string_view suffix) {
  return fmt::format("{}_{}", network.name, suffix);
}

std::vector<Arm> arms() {
  std::vector<Arm> all;
  for (const Network& network : networks) {
    const auto add = [&](std::string_view suffix, std::string_view precision, const Settings& settings) {
      all.push_back({arm_name(network, suffix), fmt::format("{}; {}", network.words, precision),
                     with({{"model", std::string(network.name)}}, settings)});
    };
    add("fp32", "everything in FP32", {{"policy", "fp32"}});
    add("fp16_mixed", "FP16 tensors, FP32 master weights, loss scale 1024",
        {{"policy", "fp16_mixed"}, {"loss_scale", "1024"}});
    add("fp16_no_master", "the same with weights stored in FP16 only",
        {{"policy", "fp16_no_master"}, {"loss_scale", "1024"}});
  }
  return all;
}

std::vector<Expectation> expectations() {
  std::vector<Expectation> all;
  for (const Network& network : networks) {
    const std::string fp32 = arm_name(network, "fp32");
    all.push_back({arm_name(network, "fp16_mixed"), fp32, Expected::as_good, agreement});
    all.push_back({arm_name(network, "fp16_no_master"), fp32, Expected::worse, harm});
  }
  return all;
}

std::string verdict(const ExperimentSummary& summary) {
  std::string text;
  for (const Network& network : networks) {
    const std::string fp32 = arm_name(network, "fp32"), bare = arm_name(network, "fp16_no_master");
    text += fmt::format("{}{}: with an FP32 master copy {}; without, {}", text.empty() ? "" : " ",
                        network.words, against_baseline(summary, arm_name(network, "fp16_mixed"), fp32),
                        against_baseline(summary, bare, fp32));
    const ArmSummary* arm = summary.find(bare);
    if (arm != nullptr && arm->lost_updates)
      text += fmt::format(", and {:.1f} % of the updates are lost", 100 * *arm->lost_updates);
    text += ".";
  }
  return text;
}

}  // namespace
}  // namespace image_master_copy

Experiment make_image_master_copy() {
  using namespace image_master_copy;
  return {
      .name = "image-master-copy",
      .summary = "FP32 master weights against FP16 weights: AlexNet and VGG-D, Adam, learning rate 2e-5",
      .paper = paper_statement,
      .claim = {"AlexNet and VGG-D learn in FP16 with an FP32 master copy of the weights as in FP32; without "
                "it they learn less.",
                expectations()},
      // Without dropout: with it the networks learn so little at this rate that there is little to lose.
      .settings = {{"dataset", "fashion_mnist"},
                   {"steps", "200"},
                   {"batch", "64"},
                   {"optimizer", "adam"},
                   {"learning_rate", "2e-5"},
                   {"schedule", "cosine"},
                   {"warmup_steps", "20"}},
      // Three epochs of 60,000 images at the published width.
      .full_settings = {{"width", "1"}, {"batch", "128"}, {"steps", "1407"}},
      .varied = {"model", "policy"},
      .arms = arms(),
      .quick_set = QuickSet::left_out,
      .verdict = verdict};
}

}  // namespace halfscope
