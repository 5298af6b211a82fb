// A classifier on 64 ranks under every order of an all-reduce, and a table of means over more ranks.
#include "experiments/ablations/experiments.hpp"

#include <fmt/format.h>

#include <halfscope/arithmetic/all_reduce.hpp>

#include "experiments/ablations/all_reduce_table.hpp"
#include "experiments/ablations/sgd_classifier.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace all_reduce {
namespace {

constexpr const char* paper_statement =
    "No such experiment. Section 3.3 asks for FP32 in large reductions; frameworks that reduce FP16 "
    "gradients "
    "over ranks add them in FP16.";

constexpr const char* baseline = "fp32_wire";
/// Of the training loss, what separates harm from the noise between roundings.
constexpr double close = 0.05;

std::vector<Arm> arms() {
  std::vector<Arm> all{{baseline, "FP32 on the wire, NCCL's ring", {{"all_reduce", "nccl_ring/fp32"}}}};
  for (const AllReduceOrder& order : all_reduce_orders) {
    all.push_back({std::string(order.name),
                   fmt::format("FP16 on the wire; {}", order.summary),
                   {{"all_reduce", std::string(order.name)}}});
  }
  all.push_back({"nccl_ring_bf16", "BF16 on the wire, NCCL's ring", {{"all_reduce", "nccl_ring/bf16"}}});
  return all;
}

std::vector<Expectation> expectations() {
  std::vector<Expectation> all;
  for (const Arm& arm : arms()) {
    if (arm.name != baseline) all.push_back({arm.name, baseline, Expected::as_good, close});
  }
  return all;
}

std::string verdict(const ExperimentSummary& summary) {
  std::string text;
  for (const ArmSummary& arm : summary.arms) {
    if (arm.arm == baseline) continue;
    text += (text.empty() ? "On 64 ranks: " : "; ") + against_baseline(summary, arm.arm, baseline);
  }
  return text +
         ". The table says what happens on more: with gradients of one sign a third of the adds of a ring of "
         "4,096 ranks stagnate, which no division cures; a tree errs about twice as much as a sum in FP32.";
}

}  // namespace
}  // namespace all_reduce

Experiment make_all_reduce() {
  using namespace all_reduce;
  return {
      .name = "all-reduce",
      .summary = "means of gradients over 8 to 4,096 ranks, by order and division; a classifier on 64 ranks",
      .paper = paper_statement,
      .claim = {"On 64 ranks an all-reduce of FP16 gradients trains as one in FP32, in any order.",
                expectations()},
      .metric = {.key = "train_loss",
                 .name = "train loss",
                 .unit = "",
                 .comparison = Comparison::ratio,
                 .lower_is_better = true,
                 .digits = 4},
      .settings = with(sgd_classifier_settings(), {{"batch", "256"},
                                                   {"steps", "100"},
                                                   {"policy", "fp16_mixed"},
                                                   {"loss_scale", "1024"},
                                                   {"ranks", "64"},
                                                   {"observe_every", "25"}}),
      .varied = {"all_reduce"},
      .arms = arms(),
      .quick_set = QuickSet::left_out,
      .all_reduces = all_reduce_table,
      .verdict = verdict};
}

}  // namespace halfscope
