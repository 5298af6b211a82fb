// Harm of missing loss scaling against the number of positions that a loss is averaged over.
#include "experiments/ablations/experiments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "experiments/ablations/language_model.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace averaging_sweep {
namespace {

constexpr const char* paper_statement =
    "Section 3.2, Fig. 3 (Multibox SSD): 67 % of activation gradients are zero and many lie below FP16's "
    "range; section 4: image classifiers train without loss scaling, the detector needs 8, the language "
    "model "
    "128. No curve is given.";

/// How many times the batch's own positions the loss is averaged over.
constexpr std::array averaging_factors{1, 16, 64, 256};
constexpr int positions_of_a_batch = 64 * 32;
/// On a GPU a batch really has so many times the positions; beyond that the logits are too many for one
/// product.
constexpr int largest_real_factor = 64;
/// Harm: the perplexity of FP16 is this many times FP32's.
constexpr double harm = 1.05;

std::string arm_name(const char* policy, int factor) {
  return fmt::format("{}_x{}", policy, factor);
}

std::string verdict(const ExperimentSummary& summary) {
  std::string text, first;
  for (const int factor : averaging_factors) {
    const std::string fp16 = arm_name("fp16_s1", factor), fp32 = arm_name("fp32", factor);
    if (!text.empty()) text += "; ";
    text += against_baseline(summary, fp16, fp32);
    const ArmSummary* ours = summary.find(fp16);
    const ArmSummary* theirs = summary.find(fp32);
    if (ours == nullptr || theirs == nullptr || !theirs->mean || !first.empty()) continue;
    if (ours->diverged > 0 || (ours->mean && *ours->mean > harm * *theirs->mean)) {
      first = fmt::format("{} positions ({} times the batch's own)", factor * positions_of_a_batch, factor);
    }
  }
  if (first.empty()) return "No harm in the arms that were run: " + text + ".";
  return fmt::format("Without loss scaling harm (5 % and more) begins at {}: ", first) + text + ".";
}

std::vector<Arm> arms() {
  std::vector<Arm> arms;
  for (const int factor : averaging_factors) {
    const std::string weight = fmt::format("{}", 1.0 / factor);
    const int sequences = std::min(factor, largest_real_factor);
    const Settings at_full_size{{"batch", fmt::format("{}", 64 * sequences)},
                                {"loss_weight", fmt::format("{}", 1.0 * sequences / factor)}};
    const std::string positions =
        fmt::format("loss averaged over {} positions", factor * positions_of_a_batch);
    arms.push_back({arm_name("fp32", factor),
                    "everything in FP32, " + positions,
                    {{"policy", "fp32"}, {"loss_weight", weight}},
                    at_full_size});
    arms.push_back({arm_name("fp16_s1", factor),
                    "FP16 tensors, FP32 master weights, no loss scaling, " + positions,
                    {{"policy", "fp16_mixed"}, {"loss_scale", "1"}, {"loss_weight", weight}},
                    at_full_size});
  }
  return arms;
}

/// One factor fewer.
std::vector<std::string> quick_arms() {
  std::vector<std::string> names;
  for (const Arm& arm : arms())
    if (!arm.name.ends_with("_x64")) names.push_back(arm.name);
  return names;
}

}  // namespace
}  // namespace averaging_sweep

Experiment make_averaging_sweep() {
  using namespace averaging_sweep;
  return {.name = "averaging-sweep",
          .summary = "a GRU language model without loss scaling, by the positions that its loss averages",
          .paper = paper_statement,
          .claim = {"The more positions a loss averages over, the more FP16 needs loss scaling.",
                    {{arm_name("fp16_s1", 1), arm_name("fp32", 1), Expected::as_good, harm - 1},
                     {arm_name("fp16_s1", 256), arm_name("fp32", 256), Expected::worse, harm - 1}}},
          .metric = test_perplexity(),
          .settings = language_model_settings(),
          .varied = {"loss_weight"},
          .arms = arms(),
          .quick_arms = quick_arms(),
          .quick_set = QuickSet::left_out,
          .verdict = verdict};
}

}  // namespace halfscope
