// The paper's bigLSTM in small (section 4.5, Fig. 5): projected LSTMs with a sampled softmax, by loss scale.
#include "experiments/ablations/experiments.hpp"
#include "experiments/ablations/language_model.hpp"
#include "experiments/ablations/loss_scale_arms.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace lstm_loss_scale {
namespace {

constexpr const char* paper_statement =
    "Section 4.5, Fig. 5 (bigLSTM on the 1B-word benchmark): without loss scaling the training perplexity "
    "diverges after about 300,000 iterations; a loss scale of 128 recovers FP32's.";

/// Of FP32's perplexity, what separates harm from the noise between roundings.
constexpr double close = 0.03;

std::string verdict(const ExperimentSummary& summary) {
  return "Without loss scaling: " + against_baseline(summary, "fp16_s1", "fp32") +
         ". With a scale of 128: " + against_baseline(summary, "fp16_s128", "fp32") + ".";
}

}  // namespace
}  // namespace lstm_loss_scale

Experiment make_lstm_loss_scale() {
  using namespace lstm_loss_scale;
  return {
      .name = "lstm-loss-scale",
      .summary = "two projected LSTMs with a sampled softmax and Adagrad, the paper's bigLSTM, by loss scale",
      .paper = paper_statement,
      .claim = {"The language model does not train without loss scaling; a factor of 128 is enough.",
                {{"fp16_s1", "fp32", Expected::worse, close},
                 {"fp16_s128", "fp32", Expected::as_good, close}}},
      .metric = test_perplexity(),
      .settings = with(large_batch_language_model_settings(), {{"model", "big_lstm"},
                                                               {"hidden_size", "128"},
                                                               {"optimizer", "adagrad"},
                                                               {"learning_rate", "0.05"},
                                                               {"schedule", "constant"}}),
      // Widths of the paper's network; its vocabulary is 62 times that of the text.
      .full_settings = {{"vocabulary", "12831"},
                        {"embedding_size", "1024"},
                        {"hidden_size", "8192"},
                        {"batch", "1024"},
                        {"sequence_length", "20"},
                        {"loss_weight", "1"}},
      .varied = {"loss_scale"},
      .arms = {fp32_arm(), static_scale_arm(1), static_scale_arm(128)},
      .quick_set = QuickSet::left_out,
      .verdict = verdict};
}

}  // namespace halfscope
