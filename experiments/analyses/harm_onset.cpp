// The largest weight of the loss at which an arm without loss scaling is not as good as its baseline of the
// same weight: the fewest positions that the loss averages over.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/analyses/analyses.hpp"
#include "experiments/results/as_good.hpp"

namespace halfscope {

AnalysisResult find_harm_onset(const AnalysisInput& input) {
  const ArmSummary* first = nullptr;
  for (const ArmSummary& arm : input.judged.arms) {
    if (arm.baseline.empty() || as_good(input.experiment, input.judged, arm) != false) continue;
    if (first == nullptr || arm.loss_weight > first->loss_weight) first = &arm;
  }
  if (first == nullptr) return {.sentence = "No harm in the arms that were run"};
  return {.sentence = fmt::format("Without loss scaling harm begins where the loss averages over {:.0f} "
                                  "times the batch's own positions",
                                  1 / first->loss_weight)};
}

}  // namespace halfscope
