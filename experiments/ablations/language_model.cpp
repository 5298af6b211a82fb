// The loss-scaling ablation of the language model (section 3.2 of the paper, Fig. 5).
#include "experiments/ablations/language_model.hpp"

#include "experiments/ablations/experiments.hpp"
#include "experiments/ablations/loss_scale_arms.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace language_model {
namespace {

constexpr const char* paper_statement =
    "Section 4.5, Fig. 5 (bigLSTM on the 1B-word benchmark): without loss scaling the training perplexity "
    "diverges after about 300,000 iterations; a loss scale of 128 recovers FP32's.";

std::string verdict(const ExperimentSummary& summary) {
  const ArmSummary* fp32 = summary.find("fp32");
  const double two_percent = fp32 != nullptr && fp32->mean ? 0.02 * *fp32->mean : 0;
  const auto sentence = [&](const std::string& arm) { return against_baseline(summary, arm, "fp32"); };
  std::string text = "Without loss scaling: " + sentence("fp16_s1") + ". ";
  const bool enough = within(summary, "fp16_s128", "fp32", two_percent);
  text += enough ? "A loss scale of 128 is enough: " : "A loss scale of 128 should be enough: ";
  text += sentence("fp16_s128");
  if (summary.find("fp16_s1024") != nullptr) text += "; 1024: " + sentence("fp16_s1024");
  return text + ". Found by itself: " + sentence("fp16_dynamic") + ".";
}

}  // namespace
}  // namespace language_model

ReportedMetric test_perplexity() {
  return {.name = "test perplexity",
          .unit = "",
          .comparison = Comparison::ratio,
          .lower_is_better = true,
          .digits = 1};
}

Settings language_model_settings() {
  return {{"model", "gru_lm"},    {"dataset", "kjv_text"}, {"vocabulary", "4096"}, {"sequence_length", "32"},
          {"batch", "64"},        {"steps", "150"},        {"optimizer", "adam"},  {"learning_rate", "3e-3"},
          {"schedule", "cosine"}, {"warmup_steps", "20"},  {"clip_norm", "1"},     {"observe_every", "25"}};
}

Settings large_batch_language_model_settings() {
  return with(language_model_settings(), {{"loss_weight", "0.00390625"}, {"evaluate_every", "50"}});
}

Settings language_model_full_settings(std::int64_t batch) {
  return {{"vocabulary", "12831"},    {"sequence_length", "64"}, {"batch", std::to_string(batch)},
          {"embedding_size", "1024"}, {"hidden_size", "1024"},   {"loss_weight", "1"}};
}

Experiment make_language_model_loss_scale() {
  using namespace language_model;
  return {
      .name = "language-model-loss-scale",
      .summary = "a GRU language model with its loss averaged over 524,288 positions, by loss scale",
      .paper = paper_statement,
      .claim = {"The language model does not train without loss scaling; a factor of 128 is enough.",
                {{"fp16_s1", "fp32", Expected::worse, 0.02}, {"fp16_s128", "fp32", Expected::as_good, 0.02}}},
      .metric = test_perplexity(),
      .settings = large_batch_language_model_settings(),
      .full_settings = language_model_full_settings(2048),
      .varied = {"loss_scale"},
      .predicts_from = "fp32",
      .arms = {fp32_arm(), static_scale_arm(1), static_scale_arm(128), static_scale_arm(1024),
               dynamic_scale_arm()},
      .quick_arms = {"fp32", "fp16_s1", "fp16_s128", "fp16_dynamic"},
      .full_arms = {"fp32", "fp16_s1", "fp16_s128", "fp16_dynamic"},
      .verdict = verdict};
}

}  // namespace halfscope
