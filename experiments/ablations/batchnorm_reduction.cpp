// The reduction ablation (section 3.3 of the paper) on batch norm statistics over 50,176 and 12,544
// positions.
#include "experiments/ablations/experiments.hpp"

#include "experiments/ablations/sgd_classifier.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace batchnorm_reduction {
namespace {

constexpr const char* paper_statement =
    "Section 3.3: large reductions (sums across elements of a vector) should be carried out in FP32; they "
    "come up "
    "mostly in batch normalization statistics and softmax. No figure is given.";

std::string verdict(const ExperimentSummary& summary) {
  std::string text = within(summary, "fp32_sums", "fp32", 1.0)
                         ? "FP16 tensors with FP32 sums keep FP32's accuracy: "
                         : "FP16 tensors with FP32 sums should keep FP32's accuracy: ";
  text += against_baseline(summary, "fp32_sums", "fp32");
  text += ". With sequential FP16 sums: " + against_baseline(summary, "fp16_sequential", "fp32");
  text += ". With pairwise FP16 sums: " + against_baseline(summary, "fp16_pairwise", "fp32") + ".";
  if (!within(summary, "fp16_sequential", "fp32", 20) && within(summary, "fp16_pairwise", "fp32", 5)) {
    text += " The order of the adds matters as much as their precision: a tree keeps its partial sums small.";
  }
  return text;
}

}  // namespace
}  // namespace batchnorm_reduction

Experiment make_batchnorm_reduction() {
  using namespace batchnorm_reduction;
  const auto half = [](std::string sums, std::string scale = "128") {
    return Settings{
        {"policy", "fp16_mixed"}, {"loss_scale", std::move(scale)}, {"reduce", std::move(sums) + "@bn*"}};
  };
  return {
      .name = "batchnorm-reduction",
      .summary = "batch norm statistics summed in FP32, FP16 sequentially, FP16 pairwise",
      .paper = paper_statement,
      .claim = {"Batch norm statistics are to be added up in FP32.",
                {{"fp32_sums", "fp32", Expected::as_good, 1},
                 {"fp16_sequential", "fp32", Expected::worse, 1}}},
      .settings = with(sgd_classifier_settings(), {{"batch_norm_epsilon", "1e-4"}}),
      .full_settings = {{"batch", "1024"}},  // statistics over 802,816 positions
      .varied = {"reduce"},
      .arms = {{"fp32", "the baseline: everything in FP32", {{"policy", "fp32"}}},
               {"fp32_sums", "FP16 tensors, FP32 sums", half("fp32_chunked(256)")},
               {"fp16_sequential", "FP16 tensors, FP16 sums one term after the other",
                half("fp16_sequential")},
               {"fp16_pairwise", "FP16 tensors, FP16 sums as a binary tree", half("fp16_pairwise")},
               {"fp32_sums_s1", "FP16 tensors, FP32 sums, no loss scaling", half("fp32_chunked(256)", "1")}},
      .quick_arms = {"fp32", "fp32_sums", "fp16_sequential", "fp16_pairwise"},
      .verdict = verdict};
}

}  // namespace halfscope
