// Models with two losses: steps that each loss skipped, and the overflow that ended a run.
#include <fmt/format.h>

#include "experiments/analyses/analyses.hpp"
#include "experiments/results/comparison.hpp"

namespace halfscope {

AnalysisResult find_two_losses(const AnalysisInput& input) {
  AnalysisResult finding;
  for (const ArmSummary& arm : input.judged.arms) {
    if (arm.baseline.empty()) continue;
    std::string text = against_baseline(input.judged, arm.arm, arm.baseline);
    const double first = arm.column("skipped").value_or(0),
                 further = arm.column("further_skipped").value_or(0);
    if (first + further > 0) {
      text += fmt::format(" (the discriminator skips {:.0f} steps, the generator {:.0f})", first, further);
    }
    if (arm.diverged > 0 && !arm.overflows.empty()) text += fmt::format(" ({})", arm.overflows.front());
    finding.on_arms[arm.arm] = std::move(text);
  }
  return finding;
}

}  // namespace halfscope
