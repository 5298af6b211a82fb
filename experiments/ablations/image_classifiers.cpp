// Table 1 of the paper: its image classifiers in mixed precision without loss scaling, beside FP32.
#include "experiments/ablations/experiments.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace image_classifiers {
namespace {

constexpr const char* paper_statement =
    "Table 1: on ILSVRC12 six classifiers reach in mixed precision, without loss scaling, the top-1 accuracy "
    "of "
    "FP32, from 0.01 points below it (Inception v2) to 0.28 points above (Inception v3). The ResNet-50 of "
    "the "
    "table is the pre-activation one; the post-activation one is added here.";

/// A network, what the paper reports for it in percent (0: nothing), and the settings that it learns with.
struct Network {
  std::string_view name, words;
  double paper_fp32, paper_mixed;
  Settings settings;
};

const std::array<Network, 7>& networks() {
  // Rates that train these widths in a hundred steps. With SGD the networks without batch norm stay on a
  // first plateau for as long as chance will have it, in FP32 too: seeds end up to 65 points apart.
  const Settings adam{{"optimizer", "adam"}, {"learning_rate", "1e-3"}};
  static const std::array<Network, 7> all{
      Network{"alexnet", "AlexNet", 56.77, 56.93, with({{"steps", "120"}, {"dropout", "0.5"}}, adam)},
      Network{"vgg_d", "VGG-D", 65.40, 65.43, with({{"steps", "120"}}, adam)},
      Network{"googlenet", "GoogLeNet", 68.33, 68.43, with({{"steps", "100"}}, adam)},
      Network{"inception_v2", "Inception v2", 70.03, 70.02, {{"steps", "100"}, {"learning_rate", "0.03"}}},
      Network{"inception_v3",
              "Inception v3",
              73.85,
              74.13,
              {{"steps", "100"},
               {"learning_rate", "0.01"},
               {"optimizer", "rmsprop"},
               {"beta2", "0.9"},
               {"epsilon", "1e-3"},
               {"label_smoothing", "0.1"}}},
      Network{"resnet50_preact",
              "ResNet-50 (pre-activation)",
              75.92,
              76.04,
              {{"steps", "100"}, {"learning_rate", "0.05"}}},
      // Its branches begin at zero: with gammas of 1 it is too chaotic at this size to be compared.
      Network{"resnet50",
              "ResNet-50 (post-activation)",
              0,
              0,
              {{"steps", "100"}, {"learning_rate", "0.05"}, {"residual_gamma", "0"}}}};
  return all;
}

std::string arm_name(const Network& network, std::string_view suffix) {
  return fmt::format("{}_{}", network.name, suffix);
}

std::vector<Arm> arms() {
  std::vector<Arm> all;
  for (const Network& network : networks()) {
    const Settings of_network = with({{"model", std::string(network.name)}}, network.settings);
    all.push_back({arm_name(network, "fp32"), fmt::format("{}; everything in FP32", network.words),
                   with(of_network, {{"policy", "fp32"}})});
    all.push_back({arm_name(network, "fp16_s1"),
                   fmt::format("{}; FP16 tensors, FP32 master weights, no loss scaling", network.words),
                   with(of_network, {{"policy", "fp16_mixed"}, {"loss_scale", "1"}})});
  }
  return all;
}

std::vector<Expectation> expectations() {
  std::vector<Expectation> all;
  for (const Network& network : networks())
    all.push_back({arm_name(network, "fp16_s1"), arm_name(network, "fp32"), Expected::within_seeds});
  return all;
}

std::vector<PublishedRow> published() {
  const auto reported = [](double value) { return value > 0 ? std::optional(value) : std::nullopt; };
  std::vector<PublishedRow> rows;
  for (const Network& network : networks())
    rows.push_back({std::string(network.words), arm_name(network, "fp32"), arm_name(network, "fp16_s1"),
                    reported(network.paper_fp32), reported(network.paper_mixed)});
  return rows;
}

/// "GoogLeNet 0.40 points below FP32, whose seeds differ by 2.10"; empty where an arm was not run.
std::string row_text(const ExperimentSummary& summary, const Network& network) {
  const ArmSummary* fp32 = summary.find(arm_name(network, "fp32"));
  const ArmSummary* mixed = summary.find(arm_name(network, "fp16_s1"));
  if (fp32 == nullptr || mixed == nullptr) return "";
  for (const ArmSummary* arm : {fp32, mixed})
    if (!arm->mean) return fmt::format("{}: {}", network.words, diverged_words(*arm));
  const double gap = *mixed->mean - *fp32->mean;
  const std::optional<double> spread = seed_spread(*fp32);
  std::string text =
      fmt::format("{} {:.2f} points {} FP32", network.words, std::fabs(gap), gap < 0 ? "below" : "above");
  if (spread) text += fmt::format(", whose seeds differ by {:.2f}", *spread);
  if (spread && -gap > *spread) text += ": more than its seeds explain";
  if (mixed->diverged > 0) text += "; " + diverged_words(*mixed);
  return text;
}

std::string verdict(const ExperimentSummary& summary) {
  std::string text;
  for (const Network& network : networks()) {
    const std::string row = row_text(summary, network);
    if (!row.empty()) text += (text.empty() ? "Mixed precision without loss scaling ends: " : "; ") + row;
  }
  return text.empty() ? "No network was run in both." : text + ".";
}

}  // namespace
}  // namespace image_classifiers

Experiment make_image_classifiers() {
  using namespace image_classifiers;
  return {.name = "image-classifiers",
          .summary =
              "the paper's image classifiers without loss scaling: FP16 with FP32 master weights, and FP32",
          .paper = paper_statement,
          .claim = {"Image classifiers learn in mixed precision without loss scaling as in FP32.",
                    expectations()},
          .settings = {{"dataset", "fashion_mnist"},
                       {"batch", "64"},
                       {"optimizer", "sgd"},
                       {"schedule", "cosine"},
                       {"warmup_steps", "20"}},
          // Three epochs of 60,000 images at the published width.
          .full_settings = {{"width", "1"}, {"batch", "128"}, {"steps", "1407"}},
          .varied = {"model", "policy"},
          .arms = arms(),
          .quick_arms = {"alexnet_fp32", "alexnet_fp16_s1", "vgg_d_fp32", "vgg_d_fp16_s1", "googlenet_fp32",
                         "googlenet_fp16_s1", "resnet50_preact_fp32", "resnet50_preact_fp16_s1"},
          .quick_set = QuickSet::left_out,
          .published = published(),
          .verdict = verdict};
}

}  // namespace halfscope
