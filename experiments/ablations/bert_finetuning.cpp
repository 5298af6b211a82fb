// The master-copy ablation on BERT: one pre-training, and fine-tunings from it at two learning rates.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/ablations/experiments.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace bert_finetuning {
namespace {

constexpr const char* paper_statement =
    "No such experiment: BERT is of 2018. Section 3.1 says that some networks need the FP32 master copy, "
    "where updates are small beside the weights that they change.";

/// Of FP32's test loss. Rounding alone moves it by less than 0.001.
constexpr double close = 0.002;

/// The share of FP32's decrease of the test loss that `arm` misses, seed by seed, in percent.
std::vector<double> missed_percent(const ExperimentSummary& summary, const std::string& arm,
                                   const std::string& baseline) {
  const ArmSummary *const start = summary.find("start"), *const reached = summary.find(baseline),
                          *const found = summary.find(arm);
  std::vector<double> missed;
  if (start == nullptr || reached == nullptr || found == nullptr) return missed;
  const std::size_t seeds = std::min({start->values.size(), reached->values.size(), found->values.size()});
  for (std::size_t i = 0; i < seeds; ++i) {
    if (!start->values[i] || !reached->values[i] || !found->values[i]) continue;
    const double decrease = *start->values[i] - *reached->values[i];
    if (decrease > 0) missed.push_back(100 * (*found->values[i] - *reached->values[i]) / decrease);
  }
  return missed;
}

/// "; 12.3 to 20.1 % of FP32's decrease missed".
std::string missed_text(const ExperimentSummary& summary, const std::string& arm,
                        const std::string& baseline) {
  const std::vector<double> missed = missed_percent(summary, arm, baseline);
  if (missed.empty()) return "";
  const auto [least, most] = std::ranges::minmax(missed);
  return missed.size() == 1 ? fmt::format("; it misses {:.1f} % of FP32's decrease", least)
                            : fmt::format("; it misses {:.1f} to {:.1f} % of FP32's decrease", least, most);
}

std::string verdict(const ExperimentSummary& summary) {
  const auto beside = [&](const std::string& arm, const std::string& baseline) {
    return against_baseline(summary, arm, baseline);
  };
  return fmt::format(
      "At a learning rate of 2e-5, with an FP32 master copy: {}. Without it: {}{}. Everything in FP16, where "
      "an epsilon of 1e-8 is 0: {}. At 1e-4, with the master copy: {}; without it {}{}.",
      beside("fp16_mixed", "fp32"), beside("fp16_no_master", "fp32"),
      missed_text(summary, "fp16_no_master", "fp32"), beside("fp16_pure", "fp32"),
      beside("fast_fp16_mixed", "fast_fp32"), beside("fast_no_master", "fast_fp32"),
      missed_text(summary, "fast_no_master", "fast_fp32"));
}

Settings fine_tuning(const std::string& rate, const std::string& policy, const std::string& scale) {
  return {{"start_from", "arm:pretraining"},
          {"dataset", "verse_genre"},
          {"learning_rate", rate},
          {"policy", policy},
          {"loss_scale", scale}};
}

std::vector<Arm> arms() {
  const std::string slow = "2e-5", fast = "1e-4";
  return {
      {"pretraining",
       "masked words and next sentences in FP32, from which all others start",
       {{"dataset", "masked_verses"}, {"learning_rate", "1e-3"}, {"policy", "fp32"}, {"loss_scale", "none"}}},
      {"start", "the pre-trained network with a new classifier, before it learns",
       with(fine_tuning("0", "fp32", "none"), {{"steps", "1"}})},
      {"fp32", "learning rate 2e-5; everything in FP32", fine_tuning(slow, "fp32", "none")},
      {"fp16_mixed", "the same; FP16 tensors, FP32 master weights, no loss scaling",
       fine_tuning(slow, "fp16_mixed", "1")},
      {"fp16_no_master", "the same with weights stored in FP16 only, loss scale 1024",
       fine_tuning(slow, "fp16_no_master", "1024")},
      {"fp16_pure", "the same with optimizer state and update arithmetic in FP16 too",
       fine_tuning(slow, "fp16_pure", "1024")},
      {"fast_fp32", "learning rate 1e-4; everything in FP32", fine_tuning(fast, "fp32", "none")},
      {"fast_fp16_mixed", "the same; FP16 tensors, FP32 master weights, no loss scaling",
       fine_tuning(fast, "fp16_mixed", "1")},
      {"fast_no_master", "the same with weights stored in FP16 only, loss scale 1024",
       fine_tuning(fast, "fp16_no_master", "1024")}};
}

}  // namespace
}  // namespace bert_finetuning

Experiment make_bert_finetuning() {
  using namespace bert_finetuning;
  return {
      .name = "bert-finetuning",
      .summary = "a small BERT, pre-trained once per seed, fine-tuned with and without FP32 master weights",
      .paper = paper_statement,
      .claim = {"Fine-tuning at a small learning rate needs an FP32 master copy, and FP32 optimizer state.",
                {{"fp16_mixed", "fp32", Expected::as_good, close},
                 {"fp16_no_master", "fp32", Expected::worse, close},
                 {"fp16_pure", "fp32", Expected::worse, close},
                 {"fast_fp16_mixed", "fast_fp32", Expected::as_good, close},
                 {"fast_no_master", "fast_fp32", Expected::worse, close}}},
      .metric = {.key = "test_loss",
                 .name = "test loss",
                 .unit = "",
                 .comparison = Comparison::difference,
                 .lower_is_better = true,
                 .digits = 4},
      // The published BERT-Tiny; 10 % of the steps warm up.
      .settings = {{"model", "bert"},
                   {"vocabulary", "4096"},
                   {"sequence_length", "32"},
                   {"embedding_size", "128"},
                   {"hidden_size", "512"},
                   {"layers", "2"},
                   {"heads", "2"},
                   {"dropout", "0.1"},
                   {"batch", "32"},
                   {"steps", "500"},
                   {"optimizer", "adamw"},
                   {"weight_decay", "0.01"},
                   {"clip_norm", "1"},
                   {"schedule", "linear"},
                   {"warmup_steps", "50"},
                   {"observe_every", "50"}},
      .full_settings = {{"embedding_size", "768"},
                        {"hidden_size", "3072"},
                        {"layers", "12"},
                        {"heads", "12"}},
      .varied = {"dataset", "learning_rate", "policy", "loss_scale", "start_from", "steps"},
      .arms = arms(),
      .quick_arms = {"start", "fp32", "fp16_no_master", "fp16_pure"},
      .quick_set = QuickSet::left_out,
      .full_arms = {"start", "fp32", "fp16_mixed", "fp16_no_master", "fp16_pure"},
      .verdict = verdict};
}

}  // namespace halfscope
