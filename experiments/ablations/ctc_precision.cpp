// A reduction over paths: CTC with FP16 inside (section 3.3, after the paper).
#include "experiments/ablations/experiments.hpp"

#include "experiments/ablations/ctc_table.hpp"
#include "experiments/ablations/speech.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace ctc_precision {
namespace {

constexpr const char* paper_statement =
    "Section 3.3: large reductions are to be carried out in FP32. CTC, the loss of the paper's speech "
    "models, "
    "is a sum over all paths; the paper does not say in which precision.";

std::string verdict(const ExperimentSummary& summary) {
  return "With path likelihoods in FP32: " + against_baseline(summary, "fp32_paths", "fp32") +
         ". In FP16: " + against_baseline(summary, "fp16_paths", "fp32") +
         ". These utterances have 75 steps of time at most. The table says what happens to longer ones: the "
         "loss stays right to a few percent while its gradient loses all resemblance, since FP16's numbers "
         "are half a unit and more apart where likelihoods are e^-512 and below.";
}

Settings half(const std::string& paths) {
  return {{"policy", "fp16_mixed"}, {"loss_scale", "128"}, {"reduce", paths + "@loss"}};
}

}  // namespace
}  // namespace ctc_precision

Experiment make_ctc_precision() {
  using namespace ctc_precision;
  return {
      .name = "ctc-precision",
      .summary = "CTC's sums over paths in FP32 and in FP16: short utterances, and a table of longer ones",
      .paper = paper_statement,
      .claim = {"FP16 inside CTC is harmless for short utterances.",
                {{"fp32_paths", "fp32", Expected::as_good, 0.1},
                 {"fp16_paths", "fp32", Expected::as_good, 0.1}}},
      .metric = test_character_error_rate(),
      .settings = with(slow_speech_settings(), normal_speech_settings()),
      .full_settings = {{"batch", "64"}},
      .varied = {"reduce"},
      .arms = {{"fp32", "the baseline: everything in FP32", {{"policy", "fp32"}}},
               {"fp32_paths", "FP16 tensors, FP32 inside CTC", half("fp32_chunked(256)")},
               {"fp16_paths", "FP16 tensors, alpha and beta in FP16", half("fp16_sequential")}},
      .quick_set = QuickSet::left_out,
      .ctc_precision = ctc_precision_table,
      .verdict = verdict};
}

}  // namespace halfscope
