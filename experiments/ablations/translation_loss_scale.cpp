// Harm of missing loss scaling to networks that translate, by the weight of the loss (section 4.4, Fig. 4).
#include "experiments/ablations/experiments.hpp"

#include <fmt/format.h>

#include <array>

#include "experiments/ablations/language_model.hpp"
#include "experiments/ablations/loss_scale_arms.hpp"
#include "experiments/ablations/loss_weight_arms.hpp"

namespace halfscope {
namespace translation_loss_scale {
namespace {

constexpr const char* paper_statement =
    "Section 4.4, Fig. 4 (English to French, LSTMs with attention of 3 and of 5 layers): without loss "
    "scaling "
    "mixed precision trains with a slight degradation; with loss scaling it follows FP32.";

/// At full size the base transformer, and the paper's LSTMs of three layers.
const std::array networks{
    WeighedNetwork{
        "transformer",
        "transformer",
        {{"model", "transformer"}, {"hidden_size", "256"}, {"layers", "2"}, {"learning_rate", "2e-3"}},
        {{"embedding_size", "512"}, {"hidden_size", "2048"}, {"layers", "6"}, {"heads", "8"}}},
    WeighedNetwork{
        "lstm",
        "LSTMs with attention",
        {{"model", "seq2seq_attention"}, {"hidden_size", "128"}, {"layers", "1"}, {"learning_rate", "5e-3"}},
        {{"embedding_size", "1024"}, {"hidden_size", "1024"}, {"layers", "3"}}}};

/// Of a batch of some 700 target tokens among those of larger ones: up to 170,000 tokens an update.
constexpr std::array parts{1, 16, 64, 256};
constexpr int judged_part = 64;

constexpr double harm = 0.5, agreement = 0.03;  // shares of FP32's perplexity

/// Adam divides its first moment by the root of its second, but for epsilon: with the weight of the loss in
/// it too the updates are the same bit for bit, since the weights are powers of two.
Settings compensation(const WeighedNetwork& /*network*/, int part) {
  return {{"epsilon", fmt::format("{}", 1e-8 / part)}};
}

std::vector<Arm> arms() {
  const std::vector<int> all(parts.begin(), parts.end()), some{1, judged_part};
  return loss_weight_arms(
      {.networks = networks,
       .parts = parts,
       .scales = {{static_scale_arm(1), all}, {static_scale_arm(1024), some}, {dynamic_scale_arm(), some}},
       .compensation = compensation});
}

std::vector<Expectation> expectations() {
  std::vector<Expectation> all;
  const auto expect = [&](const WeighedNetwork& network, std::string_view scale, int part, Expected expected,
                          double tolerance) {
    all.push_back({loss_weight_arm_name(network, scale, part), fp32_arm_name(network), expected, tolerance});
  };
  const auto& [transformer, lstm] = networks;
  expect(transformer, "fp16_s1", judged_part, Expected::worse, harm);
  expect(lstm, "fp16_s1", judged_part, Expected::worse, agreement);
  for (const WeighedNetwork& network : networks) {
    expect(network, "fp16_s1", 1, Expected::as_good, agreement);
    expect(network, "fp16_s1024", judged_part, Expected::as_good, agreement);
    expect(network, "fp16_dynamic", judged_part, Expected::as_good, agreement);
  }
  return all;
}

/// Perplexity over FP32's, means over the seeds; empty where one of both has none.
std::optional<double> ratio(const ExperimentSummary& summary, const WeighedNetwork& network,
                            std::string_view scale, int part) {
  const ArmSummary *arm = summary.find(loss_weight_arm_name(network, scale, part)),
                   *fp32 = summary.find(fp32_arm_name(network));
  if (arm == nullptr || fp32 == nullptr || !arm->mean || !fp32->mean) return std::nullopt;
  return *arm->mean / *fp32->mean;
}

/// "transformer without loss scaling: 1.01 at 1, 1.82 at 1/64"; empty where no arm was run.
std::string ratios(const ExperimentSummary& summary, const WeighedNetwork& network, std::string_view scale,
                   std::string_view words) {
  std::string text;
  for (const int part : parts) {
    const std::optional<double> found = ratio(summary, network, scale, part);
    if (found) text += fmt::format("{}{:.2f} at {}", text.empty() ? "" : ", ", *found, part_words(part));
  }
  return text.empty() ? "" : fmt::format("{} {}: {}", network.words, words, text);
}

std::string verdict(const ExperimentSummary& summary) {
  std::string text;
  for (const WeighedNetwork& network : networks) {
    for (const auto& [scale, words] : {std::pair{"fp16_s1", "without loss scaling"},
                                       {"fp16_s1024", "with a scale of 1024"},
                                       {"fp16_dynamic", "with a dynamic one"}}) {
      const std::string line = ratios(summary, network, scale, words);
      if (!line.empty())
        text += (text.empty() ? "Perplexity over FP32's by the weight of the loss; " : "; ") + line;
    }
  }
  return text.empty() ? "No arm beside FP32 was run." : text + ".";
}

}  // namespace
}  // namespace translation_loss_scale

Experiment make_translation_loss_scale() {
  using namespace translation_loss_scale;
  const auto& [transformer, lstm] = networks;
  return {
      .name = "translation-loss-scale",
      .summary = "English to French by a transformer and by LSTMs with attention, by the weight of the loss",
      .paper = paper_statement,
      .claim = {"A translator whose loss averages over enough tokens loses without loss scaling; with a "
                "scale of 1024 or a dynamic one it follows FP32.",
                expectations()},
      .metric = test_perplexity(),
      .settings = {{"dataset", "gettext_en_fr"},
                   {"vocabulary", "3000"},
                   {"steps", "250"},
                   {"batch", "64"},
                   {"embedding_size", "96"},
                   {"heads", "4"},
                   {"optimizer", "adam"},
                   {"schedule", "cosine"},
                   {"warmup_steps", "20"},
                   {"evaluate_every", "50"},
                   {"observe_every", "25"}},
      // Batches of some 20,000 target tokens.
      .full_settings = {{"vocabulary", "12000"},
                        {"batch", "2048"},
                        {"learning_rate", "7e-4"},
                        {"warmup_steps", "400"},
                        {"steps", "4000"}},
      .varied = {"model", "policy", "loss_scale", "loss_weight", "learning_rate", "epsilon", "hidden_size",
                 "layers"},
      .arms = arms(),
      .quick_arms = {fp32_arm_name(transformer), loss_weight_arm_name(transformer, "fp16_s1", 1),
                     loss_weight_arm_name(transformer, "fp16_s1", judged_part),
                     loss_weight_arm_name(transformer, "fp16_s1024", judged_part), fp32_arm_name(lstm),
                     loss_weight_arm_name(lstm, "fp16_s1", judged_part)},
      .quick_set = QuickSet::left_out,
      .verdict = verdict};
}

}  // namespace halfscope
