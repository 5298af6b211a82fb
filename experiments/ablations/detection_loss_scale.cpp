// The loss-scaling ablation on a single-shot detector (section 3.2 of the paper, Table 2, Fig. 3).
#include "experiments/ablations/detection_loss_scale.hpp"

#include "experiments/ablations/experiments.hpp"
#include "experiments/ablations/loss_scale_arms.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace detection_loss_scale {
namespace {

constexpr const char* paper_statement =
    "Section 3.2, Table 2 (Multibox SSD, Pascal VOC 2007, mAP): FP32 76.9, mixed precision without loss "
    "scaling "
    "diverges, with a loss scale of 8 77.1; Fig. 3: 67 % of its activation gradients are zero, and most "
    "others "
    "are too small for FP16.";

constexpr double close = 0.03;  // of AP50

std::string verdict(const ExperimentSummary& summary) {
  std::string text = within(summary, "fp16_s1", "fp32", close) ? "Without loss scaling nothing is lost: "
                                                               : "Without loss scaling the detector loses: ";
  text += against_baseline(summary, "fp16_s1", "fp32");
  text += within(summary, "fp16_s8", "fp32", close) ? ". A loss scale of 8 is enough: "
                                                    : ". With a loss scale of 8: ";
  text += against_baseline(summary, "fp16_s8", "fp32");
  std::string larger;
  for (const char* arm : {"fp16_s64", "fp16_s1024", "fp16_s32768"}) {
    if (summary.find(arm) != nullptr) larger += against_baseline(summary, arm, "fp32") + "; ";
  }
  text += larger.empty() ? "; " : ". Larger ones do no harm as long as nothing overflows: " + larger;
  return text + "found by itself: " + against_baseline(summary, "fp16_dynamic", "fp32") + ".";
}

}  // namespace
}  // namespace detection_loss_scale

Settings detection_settings() {
  return {{"model", "ssd"},        {"dataset", "detection_scenes"}, {"steps", "300"},
          {"batch", "16"},         {"optimizer", "adam"},           {"learning_rate", "2e-3"},
          {"schedule", "cosine"},  {"warmup_steps", "20"},          {"loss_weight", "0.00390625"},
          {"evaluate_every", "50"}};
}

Settings detection_full_settings() {
  return {{"image_size", "512"}, {"batch", "64"}, {"loss_weight", "1"}, {"evaluate_every", "0"}};
}

Experiment make_detection_loss_scale() {
  using namespace detection_loss_scale;
  return {
      .name = "detection-loss-scale",
      .summary = "loss scales for a single-shot detector: AP50 over scenes of Fashion-MNIST items",
      .paper = paper_statement,
      .claim = {"The detector does not train without loss scaling; a factor of 8 is enough.",
                {{"fp16_s1", "fp32", Expected::worse, close}, {"fp16_s8", "fp32", Expected::as_good, close}}},
      .metric = {.name = "AP50", .unit = "", .comparison = Comparison::difference, .digits = 3},
      .settings = detection_settings(),
      .full_settings = detection_full_settings(),
      .varied = {"loss_scale"},
      .predicts_from = "fp32",
      .arms = {fp32_arm(), static_scale_arm(1), static_scale_arm(8), static_scale_arm(64),
               static_scale_arm(1024), static_scale_arm(32768), dynamic_scale_arm()},
      .quick_arms = {"fp32", "fp16_s1", "fp16_s8", "fp16_dynamic"},
      .full_arms = {"fp32", "fp16_s1", "fp16_s8", "fp16_dynamic"},
      .verdict = verdict};
}

}  // namespace halfscope
