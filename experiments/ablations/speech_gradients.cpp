// Weight gradients of speech below FP16's smallest number (section 3.1, Fig. 2b).
#include "experiments/ablations/experiments.hpp"

#include <fmt/format.h>

#include "experiments/ablations/speech.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace speech_gradients {
namespace {

constexpr const char* paper_statement =
    "Section 3.1, Fig. 2b (Mandarin speech model, sampled every 4,000 iterations): about 5 % of the weight "
    "gradients are below 2^-24.";

std::string share(const ExperimentSummary& summary, const std::string& arm, const std::string& when) {
  const ArmSummary* found = summary.find(arm);
  if (found == nullptr || !found->flushed) return arm + " was not run";
  return fmt::format("{:.1f} % {}", 100 * *found->flushed, when);
}

std::string verdict(const ExperimentSummary& summary) {
  return fmt::format(
      "Of the weight gradients that are not zero, FP16 flushes (paper: about 5 % below 2^-24, of which it "
      "keeps "
      "those above 2^-25): {}; {}; {}. The share grows as the loss falls, so the figure says as much about "
      "when "
      "it was taken as about the network. It does no harm: {}.",
      share(summary, "slow_fp16_s1", "at the small learning rate, 1,600 steps"),
      share(summary, "fp16_s1", "at the normal one, 300 steps"),
      share(summary, "long_fp16_s1", "at the normal one, 900 steps"),
      against_baseline(summary, "fp16_s1", "fp32"));
}

const Settings& no_scaling() {
  static const Settings settings{{"policy", "fp16_mixed"}, {"loss_scale", "1"}};
  return settings;
}

}  // namespace
}  // namespace speech_gradients

Experiment make_speech_gradients() {
  using namespace speech_gradients;
  const Settings normal = normal_speech_settings(), scaled = with(normal, no_scaling());
  return {.name = "speech-gradients",
          .summary = "weight gradients of Deep Speech 2 that FP16 flushes without loss scaling",
          .paper = paper_statement,
          .claim = {"A speech model whose smallest weight gradients FP16 flushes trains all the same.",
                    {{"fp16_s1", "fp32", Expected::as_good, 0.1}}},
          .metric = test_character_error_rate(),
          .settings = with(slow_speech_settings(), {{"observe_roles", "weight_gradient"}}),
          .full_settings = {{"batch", "64"}},
          .varied = {"policy", "optimizer", "learning_rate", "steps", "schedule"},
          .arms = {{"fp32", "normal learning rate, 300 steps; everything in FP32",
                    with(normal, {{"policy", "fp32"}})},
                   {"fp16_s1", "the same; FP16 tensors, FP32 master weights, no loss scaling", scaled},
                   {"long_fp16_s1", "the same, 900 steps", with(scaled, {{"steps", "900"}})},
                   {"slow_fp16_s1", "SGD at 5e-5, 1,600 steps; no loss scaling", no_scaling()}},
          .quick_arms = {"fp32", "fp16_s1"},
          .quick_set = QuickSet::left_out,
          .verdict = verdict};
}

}  // namespace halfscope
