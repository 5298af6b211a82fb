// The master-copy ablation (section 3.1 of the paper, Fig. 2a and 2b).
#include "experiments/ablations/experiments.hpp"

#include <fmt/format.h>

#include "experiments/ablations/loss_scale_arms.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace master_copy {
namespace {

constexpr const char* paper_statement =
    "Section 3.1, Fig. 2a (Mandarin speech model): with an FP32 master copy FP16 training matches FP32; "
    "updating FP16 "
    "weights instead loses 80 % of the accuracy, relatively. About 5 % of weight gradients are below 2^-24 "
    "(Fig. 2b).";

std::string verdict(const ExperimentSummary& summary) {
  std::string text = within(summary, "fp16_mixed", "fp32", 0.5)
                         ? "With an FP32 master copy FP16 training keeps FP32's accuracy: "
                         : "With an FP32 master copy FP16 training should keep FP32's accuracy: ";
  text += against_baseline(summary, "fp16_mixed", "fp32") + ". ";
  text += "Without the master copy: " + against_baseline(summary, "fp16_no_master", "fp32");
  const ArmSummary* no_master = summary.find("fp16_no_master");
  const ArmSummary* fp32 = summary.find("fp32");
  if (no_master != nullptr && no_master->mean && fp32 != nullptr && fp32->mean &&
      *no_master->mean < *fp32->mean) {
    text += fmt::format(", a relative loss of {:.0f} %", 100 * (1 - *no_master->mean / *fp32->mean));
  }
  if (no_master != nullptr && no_master->lost_updates) {
    text += fmt::format("; {:.1f} % of its updates rounded back to the weight they came from",
                        100 * *no_master->lost_updates);
  }
  return text + ". With weights, optimizer state and update arithmetic all in FP16: " +
         against_baseline(summary, "fp16_pure", "fp32") + ".";
}

Experiment make(std::string name, std::string summary, Settings settings) {
  const auto scaled = [](std::string policy) {
    return Settings{{"policy", std::move(policy)}, {"loss_scale", "1024"}};
  };
  return {.name = std::move(name),
          .summary = std::move(summary),
          .paper = paper_statement,
          .claim = {"FP16 training with an FP32 master copy of the weights matches FP32; without it, it does "
                    "not.",
                    {{"fp16_mixed", "fp32", Expected::as_good, 0.5},
                     {"fp16_no_master", "fp32", Expected::worse, 0.5}}},
          .settings = with(std::move(settings), {{"model", "cnn_bn"},
                                                 {"dataset", "fashion_mnist"},
                                                 {"steps", "600"},
                                                 {"batch", "64"},
                                                 {"schedule", "cosine"}}),
          // Three epochs of 60,000 images.
          .full_settings = {{"model", "resnet18"}, {"batch", "128"}, {"steps", "1407"}},
          .varied = {"policy"},
          .arms = {{"fp32", "the baseline: everything in FP32", {{"policy", "fp32"}}},
                   {"fp16_mixed", "FP16 tensors, FP32 master weights, loss scale 1024", scaled("fp16_mixed")},
                   {"fp16_no_master", "the same with weights stored in FP16 only", scaled("fp16_no_master")},
                   {"fp16_pure", "optimizer state and update arithmetic in FP16 too", scaled("fp16_pure")},
                   static_scale_arm(1)},
          .quick_arms = {"fp32", "fp16_mixed", "fp16_no_master", "fp16_pure"},
          .full_arms = {"fp32", "fp16_mixed", "fp16_s1", "fp16_no_master"},
          .verdict = verdict};
}

}  // namespace
}  // namespace master_copy

Experiment make_master_copy() {
  return master_copy::make("master-copy",
                           "FP32 master weights against FP16 weights: Adam, learning rate 1e-5",
                           {{"optimizer", "adam"}, {"learning_rate", "1e-5"}});
}

Experiment make_master_copy_sgd() {
  Experiment experiment = master_copy::make(
      "master-copy-sgd", "FP32 master weights against FP16 weights: SGD with momentum, learning rate 1e-4",
      {{"optimizer", "sgd"}, {"momentum", "0.9"}, {"learning_rate", "1e-4"}});
  experiment.quick_set = QuickSet::left_out;
  return experiment;
}

}  // namespace halfscope
