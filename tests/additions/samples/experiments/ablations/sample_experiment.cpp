// An experiment as a newcomer would add it: a classifier's loss scale: none, 1024 and the sample scaler.
#include "experiments/ablations/experiments.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace sample_experiment {
namespace {

std::string verdict(const ExperimentSummary& summary) {
  return against_baseline(summary, "fp16_s1", "fp32") + "; " +
         against_baseline(summary, "fp16_s1024", "fp32") + ".";
}

}  // namespace
}  // namespace sample_experiment

Experiment make_sample_experiment() {
  using namespace sample_experiment;
  const auto half = [](std::string scale) {
    return Settings{{"policy", "fp16_mixed"}, {"loss_scale", std::move(scale)}};
  };
  return {.name = "sample-experiment",
          .summary = "a classifier without loss scaling and at 1024",
          .paper = "Section 3.2.",
          .settings = {{"model", "cnn_bn"},
                       {"dataset", "fashion_mnist"},
                       {"steps", "200"},
                       {"batch", "64"},
                       {"optimizer", "sgd"},
                       {"learning_rate", "0.05"}},
          .varied = {"loss_scale"},
          .arms = {{"fp32", "the baseline: everything in FP32", {{"policy", "fp32"}}},
                   {"fp16_s1", "FP16 tensors, no loss scaling", half("1")},
                   {"fp16_s1024", "FP16 tensors, loss scale 1024", half("1024")},
                   {"fp16_sample_scaler", "FP16 tensors, the sample scaler", half("sample_scaler")}},
          .verdict = verdict};
}

}  // namespace halfscope
