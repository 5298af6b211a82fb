// The largest weight of the loss at which an arm without loss scaling is not as good as its baseline of the
// same weight.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/analyses/analyses.hpp"
#include "experiments/results/judgement.hpp"

namespace halfscope {

AnalysisResult find_harm_onset(const AnalysisInput& input) {
  const ArmSummary* first = nullptr;
  std::vector<std::string> open;
  for (const ArmSummary& arm : input.judged.arms) {
    if (arm.baseline.empty()) continue;
    const std::optional<bool> unharmed = as_good(input.experiment, input.judged, arm);
    if (!unharmed) open.push_back(arm.arm);
    if (unharmed == false && (first == nullptr || arm.loss_weight > first->loss_weight)) first = &arm;
  }
  if (first != nullptr)
    return {.sentence = fmt::format("Without loss scaling harm begins where the loss is multiplied by 1/{:g}",
                                    1 / first->loss_weight)};
  if (open.empty()) return {.sentence = "No harm in the arms that were run"};
  return {.sentence = fmt::format("The seeds leave open whether there is harm: {}", fmt::join(open, ", "))};
}

}  // namespace halfscope
