// One arm per accumulation model that matrix products can have.
#include "experiments/ablations/experiments.hpp"

#include <fmt/format.h>

#include <halfscope/arithmetic/accumulate.hpp>

#include "experiments/ablations/accumulation_table.hpp"
#include "experiments/ablations/sgd_classifier.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace accumulation_error {
namespace {

constexpr const char* paper_statement =
    "Section 3.3: some networks require FP16 products to be accumulated into FP32 to keep FP32's accuracy; "
    "tensor cores do so. No figure is given.";

/// The arm's name without what a folder's name should not have.
std::string arm_name(std::string_view model) {
  std::string name;
  for (const char c : model) {
    if (c == '(') {
      name += '_';
    } else if (c != ')') {
      name += c;
    }
  }
  return name;
}

/// Matrix products take every model but pairwise and Kahan.
bool takes_products(const AccumulateModel& model) {
  return model.order != AccumulateOrder::pairwise && model.order != AccumulateOrder::kahan;
}

constexpr double close = 1;  // point

std::string verdict(const ExperimentSummary& summary) {
  std::string text;
  for (const ArmSummary& arm : summary.arms) {
    if (arm.arm == "fp32" || within(summary, arm.arm, "fp32", close)) continue;
    text +=
        (text.empty() ? "Not within 1 point of fp32: " : "; ") + against_baseline(summary, arm.arm, "fp32");
  }
  if (text.empty()) text = "Every accumulation model that was run keeps fp32's accuracy within 1 point";
  return text +
         ". The terms of a network's products have both signs, and the error of such sums stays small "
         "however "
         "they add up; sums of many terms of one sign stagnate or overflow in FP16, as the table shows.";
}

std::vector<Arm> make_arms() {
  std::vector<Arm> arms{{"fp32", "the baseline: everything in FP32", {{"policy", "fp32"}}}};
  for (const NamedAccumulateModel& named : accumulate_models) {
    if (!takes_products(parse_accumulate_model(named.name))) continue;
    arms.push_back(
        {arm_name(named.name),
         std::string(named.summary),
         {{"policy", "fp16_mixed"}, {"loss_scale", "128"}, {"accumulate", std::string(named.name)}}});
  }
  return arms;
}

}  // namespace
}  // namespace accumulation_error

Experiment make_accumulation_error() {
  using namespace accumulation_error;
  return {.name = "accumulation-error",
          .summary = "a classifier under every model of how matrix products add up",
          .paper = paper_statement,
          .claim = {"Products of FP16 matrices are to be added up in FP32, as tensor cores do.",
                    {{"fp32_sequential", "fp32", Expected::as_good, close},
                     {"tensor_core_hopper", "fp32", Expected::as_good, close}}},
          .settings = with(sgd_classifier_settings(), {{"schedule", "cosine"}}),
          .full_settings = {{"batch", "512"}},
          .varied = {"accumulate"},
          .arms = make_arms(),
          .quick_set = QuickSet::left_out,
          .full_arms = {"fp32", "fp32_sequential", "tensor_core_hopper", "fp16_sequential"},
          .accumulation = accumulation_table,
          .verdict = verdict};
}

}  // namespace halfscope
