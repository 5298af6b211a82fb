// Gradient accumulation: a batch in parts, the loss of each divided by their number, by the format of the
// sum.
#include <fmt/format.h>

#include "experiments/ablations/experiments.hpp"
#include "experiments/ablations/language_model.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace gradient_accumulation {
namespace {

constexpr const char* paper_statement =
    "No such experiment: section 3.2 chooses a scale for gradients of whole batches.";

/// Of FP32's perplexity, what separates harm from the noise between roundings.
constexpr double close = 0.02;

Arm accumulating(const std::string& policy, int scale, int micro_batches, const std::string& format) {
  std::string name = policy == "fp32" ? "fp32" : fmt::format("fp16_s{}", scale);
  std::string summary = policy == "fp32" ? "everything in FP32"
                                         : fmt::format("FP16 with an FP32 master copy, loss scale {}", scale);
  if (micro_batches > 1) {
    name += fmt::format("_in{}", micro_batches);
    summary += fmt::format("; {} micro-batches", micro_batches);
  }
  if (format != "fp32") {
    name += "_sum_" + format;
    summary += ", added in FP16";
  }
  return {name,
          summary,
          {{"policy", policy},
           {"loss_scale", std::to_string(scale)},
           {"micro_batches", std::to_string(micro_batches)},
           {"gradient_accumulator", format}}};
}

std::vector<Arm> arms() {
  std::vector<Arm> all{accumulating("fp32", 1, 1, "fp32"), accumulating("fp32", 1, 16, "fp32")};
  for (const int scale : {128, 1024}) {
    for (const int micro_batches : {1, 4, 16}) {
      all.push_back(accumulating("fp16_mixed", scale, micro_batches, "fp32"));
      if (micro_batches > 1) all.push_back(accumulating("fp16_mixed", scale, micro_batches, "fp16"));
    }
  }
  return all;
}

std::string verdict(const ExperimentSummary& summary) {
  const auto beside = [&](const std::string& arm, const std::string& whole) {
    return against_baseline(summary, arm, whole);
  };
  return fmt::format(
      "In 16 micro-batches, FP32: {}; at a loss scale of 128: {}; at 1024: {}, with the sum in FP16: {}. A "
      "part's "
      "loss is a mean over a sixteenth of the tokens and is divided by 16, so that each token's gradient is "
      "that "
      "of the whole batch.",
      beside("fp32_in16", "fp32"), beside("fp16_s128_in16", "fp16_s128"),
      beside("fp16_s1024_in16", "fp16_s1024"), beside("fp16_s1024_in16_sum_fp16", "fp16_s1024"));
}

}  // namespace
}  // namespace gradient_accumulation

Experiment make_gradient_accumulation() {
  using namespace gradient_accumulation;
  return {
      .name = "gradient-accumulation",
      .summary =
          "the GRU language model in 1, 4 and 16 micro-batches a step, by loss scale and format of the sum",
      .paper = paper_statement,
      .claim = {"Micro-batches need no other loss scale than the whole batch, and their sum may be FP16.",
                {{"fp32_in16", "fp32", Expected::as_good, close},
                 {"fp16_s128_in16", "fp16_s128", Expected::as_good, close},
                 {"fp16_s1024_in16", "fp16_s1024", Expected::as_good, close},
                 {"fp16_s1024_in16_sum_fp16", "fp16_s1024", Expected::as_good, close}}},
      .metric = test_perplexity(),
      .settings = large_batch_language_model_settings(),
      .full_settings = language_model_full_settings(2048),
      .varied = {"policy", "loss_scale", "micro_batches", "gradient_accumulator"},
      .arms = arms(),
      .quick_arms = {"fp32", "fp16_s1024", "fp16_s1024_in16", "fp16_s1024_in16_sum_fp16"},
      .quick_set = QuickSet::left_out,
      .verdict = verdict};
}

}  // namespace halfscope
