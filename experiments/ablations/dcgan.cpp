// DCGAN with the cross entropy of probabilities and of logits, under constant and dynamic loss scales.
#include "experiments/ablations/experiments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace dcgan {
namespace {

constexpr const char* paper_statement =
    "Section 4.6, Figure 6: a DCGAN makes faces in mixed precision that look like those of FP32. Loss "
    "scaling "
    "was not needed.";

struct Loss {
  std::string_view prefix, summary, model;
};
constexpr std::array losses{
    Loss{"probabilities", "cross entropy of probabilities", "dcgan"},
    Loss{"logits", "cross entropy of logits", "dcgan_logits"},
};

struct Precision {
  std::string_view name, summary, policy, loss_scale;
};
constexpr std::array precisions{
    Precision{"fp32", "FP32", "fp32", "none"},
    Precision{"s1", "FP16, FP32 master weights, no loss scaling", "fp16_mixed", "1"},
    Precision{"s1024", "FP16, FP32 master weights, loss scale 1024", "fp16_mixed", "1024"},
    Precision{"dynamic", "FP16, FP32 master weights, dynamic loss scale", "fp16_mixed", "dynamic"},
    Precision{"no_master", "FP16 weights, dynamic loss scale", "fp16_no_master", "dynamic"},
};

/// Runs that are the same but for rounding end up to half as far apart again: only a factor tells.
constexpr double one_factor = 1;

std::string arm_name(const Loss& loss, const Precision& precision) {
  return fmt::format("{}_{}", loss.prefix, precision.name);
}

std::vector<Arm> arms() {
  std::vector<Arm> all;
  for (const Loss& loss : losses) {
    for (const Precision& precision : precisions) {
      all.push_back({arm_name(loss, precision), fmt::format("{}; {}", loss.summary, precision.summary),
                     Settings{{"model", std::string(loss.model)},
                              {"teacher", "arm:judge"},
                              {"policy", std::string(precision.policy)},
                              {"loss_scale", std::string(precision.loss_scale)}}});
    }
  }
  all.push_back({"judge",
                 "a classifier in FP32, whose features tell how far images are apart; its own result is its "
                 "accuracy in percent",
                 {{"model", "cnn_bn"}, {"policy", "fp32"}, {"loss_scale", "none"}}});
  return all;
}

/// Of an arm beside FP32: skipped steps, and the overflow that a run without a result ends with.
std::string sentence(const ExperimentSummary& summary, const Loss& loss, const Precision& precision) {
  const std::string name = arm_name(loss, precision);
  const ArmSummary* const arm = summary.find(name);
  if (arm == nullptr) return "";
  std::string text = against_baseline(summary, name, arm_name(loss, precisions[0]));
  if (arm->skipped.value_or(0) + arm->further_skipped.value_or(0) > 0) {
    text += fmt::format(" (the discriminator skips {:.0f} steps, the generator {:.0f})", *arm->skipped,
                        arm->further_skipped.value_or(0));
  }
  if (arm->diverged > 0 && !arm->overflows.empty()) text += fmt::format(" ({})", arm->overflows.front());
  return text;
}

std::string verdict(const ExperimentSummary& summary) {
  std::vector<std::string> sentences;
  for (const Loss& loss : losses) {
    std::vector<std::string> beside;
    for (const Precision& precision : precisions) {
      std::string text = precision.name == "fp32" ? "" : sentence(summary, loss, precision);
      if (!text.empty()) beside.push_back(std::move(text));
    }
    if (beside.empty()) continue;
    std::string summary_text(loss.summary);
    summary_text.front() = 'C';
    sentences.push_back(fmt::format("{}: {}.", summary_text, fmt::join(beside, "; ")));
  }
  return sentences.empty() ? "No arm was run beside FP32." : fmt::format("{}", fmt::join(sentences, " "));
}

}  // namespace
}  // namespace dcgan

Experiment make_dcgan_experiment() {
  using namespace dcgan;
  return {
      .name = "dcgan",
      .summary = "a generator of images under two forms of its loss, constant and dynamic loss scales",
      .paper = paper_statement,
      .claim = {"A DCGAN trains in mixed precision without loss scaling; a constant scale of 1024 ends it.",
                {{"logits_s1", "logits_fp32", Expected::as_good, one_factor},
                 {"probabilities_dynamic", "probabilities_fp32", Expected::as_good, one_factor},
                 {"probabilities_s1024", "probabilities_fp32", Expected::worse, one_factor}}},
      .metric = {.name = "Fréchet distance",
                 .unit = "",
                 .comparison = Comparison::ratio,
                 .lower_is_better = true,
                 .digits = 1},
      .settings = {{"dataset", "fashion_mnist_32"},
                   {"optimizer", "adam"},
                   {"learning_rate", "5e-4"},
                   {"beta1", "0.5"},
                   {"batch", "64"},
                   {"steps", "400"},
                   {"observe_every", "25"}},
      .varied = {"model", "policy", "loss_scale", "teacher"},
      .arms = arms(),
      .quick_arms = {"logits_fp32", "logits_s1", "logits_s1024", "logits_dynamic"},
      .quick_set = QuickSet::left_out,
      .scale_columns = ScaleColumns::shown,
      .verdict = verdict};
}

}  // namespace halfscope
