// The loss-scaling ablation on a segmentation (section 3.2 of the paper; the network is none of the paper's).
#include "experiments/ablations/segmentation_loss_scale.hpp"

#include "experiments/ablations/experiments.hpp"
#include "experiments/ablations/loss_scale_arms.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace segmentation_loss_scale {
namespace {

constexpr const char* paper_statement =
    "Section 3.2: gradients below 2^-24 become zero in FP16, and networks whose gradients are that small do "
    "not "
    "train without loss scaling. No segmentation is reported; the nearest is Multibox SSD (Table 2), which "
    "diverges without it.";

std::string verdict(const ExperimentSummary& summary) {
  const ArmSummary *plain = summary.find("fp16_s1"), *fp32 = summary.find("fp32");
  const bool fails =
      plain != nullptr && fp32 != nullptr && plain->mean && fp32->mean && *plain->mean >= 2 * *fp32->mean;
  std::string text = fails ? "Without loss scaling it does not train: " : "Without loss scaling: ";
  text += against_baseline(summary, "fp16_s1", "fp32");
  text += ". With a loss scale of 256: " + against_baseline(summary, "fp16_s256", "fp32");
  if (summary.find("fp16_dynamic") != nullptr)
    text += "; found by itself: " + against_baseline(summary, "fp16_dynamic", "fp32");
  return text + ".";
}

}  // namespace
}  // namespace segmentation_loss_scale

Settings segmentation_settings() {
  return {{"model", "unet"},      {"dataset", "segmentation_scenes"},
          {"steps", "200"},       {"batch", "16"},
          {"optimizer", "adam"},  {"learning_rate", "2e-3"},
          {"schedule", "cosine"}, {"warmup_steps", "20"}};
}

Experiment make_segmentation_loss_scale() {
  using namespace segmentation_loss_scale;
  return {
      .name = "segmentation-loss-scale",
      .summary = "loss scales for a U-Net: train loss per pixel over scenes of Fashion-MNIST items",
      .paper = paper_statement,
      .claim = {"A network whose gradients are below FP16's range does not train without loss scaling.",
                {{"fp16_s1", "fp32", Expected::worse, 1.0}, {"fp16_s256", "fp32", Expected::as_good, 0.05}}},
      .metric = {.key = "train_loss",
                 .name = "train loss",
                 .unit = "",
                 .comparison = Comparison::ratio,
                 .lower_is_better = true,
                 .digits = 3},
      .settings = with(segmentation_settings(), {{"loss_weight", "0.00390625"}}),
      // 64 images of 262,144 pixels: the 16.8 million that 1/256 of 65,536 stands for.
      .full_settings = {{"image_size", "512"}, {"batch", "64"}, {"loss_weight", "1"}},
      .varied = {"loss_scale"},
      .predicts_from = "fp32",
      .arms = {fp32_arm(), static_scale_arm(1), static_scale_arm(256), dynamic_scale_arm()},
      .quick_arms = {"fp32", "fp16_s1", "fp16_s256"},
      .quick_set = QuickSet::left_out,
      .verdict = verdict};
}

}  // namespace halfscope
