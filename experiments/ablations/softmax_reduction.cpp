// The reduction ablation (section 3.3 of the paper) on the softmax over a vocabulary.
#include "experiments/ablations/experiments.hpp"

#include "experiments/ablations/language_model.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace softmax_reduction {
namespace {

constexpr const char* paper_statement =
    "Section 3.3: large reductions (sums across elements of a vector) should be carried out in FP32; they "
    "come up mostly in batch normalization statistics and softmax. No figure is given.";

std::string verdict(const ExperimentSummary& summary) {
  const ArmSummary* fp32 = summary.find("fp32");
  const double one_percent = fp32 != nullptr && fp32->mean ? 0.01 * *fp32->mean : 0;
  std::string text = within(summary, "fp32_sums", "fp32", one_percent)
                         ? "FP16 tensors with FP32 sums keep FP32's perplexity: "
                         : "FP16 tensors with FP32 sums should keep FP32's perplexity: ";
  text += against_baseline(summary, "fp32_sums", "fp32");
  return text + ". With sequential FP16 sums in training's softmax, judged with FP32 sums: " +
         against_baseline(summary, "fp16_sums", "fp32") + ".";
}

Settings half(std::string sums, std::string scale = "1024") {
  return {{"policy", "fp16_mixed"}, {"loss_scale", std::move(scale)}, {"reduce", std::move(sums) + "@loss"}};
}

}  // namespace
}  // namespace softmax_reduction

Experiment make_softmax_reduction() {
  using namespace softmax_reduction;
  return {
      .name = "softmax-reduction",
      .summary = "the softmax over 4,096 words summed in FP32, FP16 sequentially",
      .paper = paper_statement,
      .claim = {"The sums of a softmax are to be added up in FP32.",
                {{"fp32_sums", "fp32", Expected::as_good, 0.01},
                 {"fp16_sums", "fp32", Expected::worse, 0.01}}},
      .metric = test_perplexity(),
      .settings = with(language_model_settings(), {{"steps", "200"},
                                                   {"optimizer", "sgd"},
                                                   {"momentum", "0.9"},
                                                   {"learning_rate", "1"},
                                                   {"evaluate_every", "100"}}),
      .full_settings = language_model_full_settings(512),
      .varied = {"reduce"},
      .arms = {{"fp32", "the baseline: everything in FP32", {{"policy", "fp32"}}},
               {"fp32_sums", "FP16 tensors, FP32 sums", half("fp32_chunked(256)")},
               {"fp16_sums", "FP16 tensors, FP16 sums one term after the other", half("fp16_sequential")},
               {"fp32_sums_s1", "FP16 tensors, FP32 sums, no loss scaling", half("fp32_chunked(256)", "1")}},
      .quick_arms = {"fp32", "fp32_sums", "fp16_sums"},
      .verdict = verdict};
}

}  // namespace halfscope
