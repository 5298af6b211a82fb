// The master-copy ablation on speech, the paper's own (section 3.1, Fig. 2a; Table 3).
#include "experiments/ablations/experiments.hpp"

#include <fmt/format.h>

#include "experiments/ablations/speech.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace speech_master_copy {
namespace {

constexpr const char* paper_statement =
    "Section 3.1, Fig. 2a (Mandarin speech model, 800 hours, 20 epochs): with an FP32 master copy FP16 "
    "training matches FP32; updating FP16 weights instead loses 80 %, relatively. Table 3 (character error "
    "rate): English 2.20 in FP32, 1.99 in mixed precision; Mandarin 15.82 and 15.01.";

/// Shares of FP32's error rate.
constexpr double close = 0.02, much_worse = 0.4;

std::string lost_updates(const ExperimentSummary& summary, const std::string& arm) {
  const ArmSummary* found = summary.find(arm);
  if (found == nullptr || !found->lost_updates) return "";
  return fmt::format("; {:.1f} % of its updates rounded back to the weight they came from",
                     100 * *found->lost_updates);
}

std::string verdict(const ExperimentSummary& summary) {
  const auto beside = [&](const std::string& arm, const std::string& baseline) {
    return against_baseline(summary, arm, baseline);
  };
  return fmt::format(
      "At the small learning rate, with an FP32 master copy: {}; without loss scaling {}. Without the master "
      "copy: {}{}. Everything in FP16: {}. At a normal learning rate, where updates are larger than what "
      "FP16 "
      "weights can hold: {}; without the master copy {}{}.",
      beside("fp16_s128", "fp32"), beside("fp16_s1", "fp32"), beside("fp16_no_master", "fp32"),
      lost_updates(summary, "fp16_no_master"), beside("fp16_pure", "fp32"),
      beside("normal_fp16_s128", "normal_fp32"), beside("normal_no_master", "normal_fp32"),
      lost_updates(summary, "normal_no_master"));
}

Settings half(const std::string& policy, const std::string& scale) {
  return {{"policy", policy}, {"loss_scale", scale}};
}

std::vector<Arm> arms() {
  const Settings normal = normal_speech_settings(), fp32{{"policy", "fp32"}};
  return {
      {"fp32", "small learning rate; everything in FP32", fp32},
      {"fp16_s1", "the same; FP16 tensors, FP32 master weights, no loss scaling", half("fp16_mixed", "1")},
      {"fp16_s128", "the same with loss scale 128", half("fp16_mixed", "128")},
      {"fp16_no_master", "the same with weights stored in FP16 only", half("fp16_no_master", "128")},
      {"fp16_pure", "the same with optimizer state and update arithmetic in FP16 too",
       half("fp16_pure", "128")},
      {"normal_fp32", "normal learning rate; everything in FP32", with(normal, fp32)},
      {"normal_fp16_s128", "the same; FP16 tensors, FP32 master weights, loss scale 128",
       with(normal, half("fp16_mixed", "128"))},
      {"normal_no_master", "the same with weights stored in FP16 only",
       with(normal, half("fp16_no_master", "128"))}};
}

}  // namespace
}  // namespace speech_master_copy

Experiment make_speech_master_copy() {
  using namespace speech_master_copy;
  return {
      .name = "speech-master-copy",
      .summary = "Deep Speech 2 with FP32 master weights against FP16 weights, at two learning rates",
      .paper = paper_statement,
      .claim = {"A speech model needs an FP32 master copy where its updates are small, and no loss scaling.",
                {{"fp16_s1", "fp32", Expected::as_good, close},
                 {"fp16_s128", "fp32", Expected::as_good, close},
                 {"fp16_no_master", "fp32", Expected::worse, much_worse},
                 {"normal_fp16_s128", "normal_fp32", Expected::as_good, 0.1},
                 {"normal_no_master", "normal_fp32", Expected::as_good, 0.1}}},
      .metric = test_character_error_rate(),
      .settings = slow_speech_settings(),
      .full_settings = {{"batch", "64"}},
      .varied = {"policy", "loss_scale", "optimizer", "learning_rate", "steps", "schedule"},
      .arms = arms(),
      .quick_arms = {"normal_fp32", "normal_fp16_s128", "normal_no_master"},
      .quick_set = QuickSet::left_out,
      .full_arms = {"fp32", "fp16_s1", "fp16_s128", "fp16_no_master"},
      .verdict = verdict};
}

}  // namespace halfscope
