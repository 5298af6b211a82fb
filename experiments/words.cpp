// Says in words how an arm compares with its baseline.
#include "experiments/words.hpp"

#include <fmt/format.h>

#include <cmath>

namespace halfscope {

std::string diverged_words(const ArmSummary& arm) {
  return fmt::format("{} diverged in {} of {} seed{} (first at step {})", arm.arm, arm.diverged,
                     arm.values.size(), arm.values.size() == 1 ? "" : "s", arm.diverged_step.value_or(0));
}

std::string against_baseline(const ExperimentSummary& summary, const std::string& arm,
                             const std::string& baseline) {
  const ArmSummary* ours = summary.find(arm);
  const ArmSummary* theirs = summary.find(baseline);
  if (ours == nullptr) return arm + " was not run";
  if (!ours->mean) return diverged_words(*ours);
  std::string text;
  if (theirs == nullptr || !theirs->mean) {
    text = fmt::format("{} ends at {:.2f} % (no {} to compare with)", arm, *ours->mean, baseline);
  } else {
    const double gap = *ours->mean - *theirs->mean;
    text = fmt::format("{} ends {:.2f} points {} {} ({:.2f} against {:.2f} %)", arm, std::fabs(gap),
                       gap < 0 ? "below" : "above", baseline, *ours->mean, *theirs->mean);
  }
  if (ours->diverged > 0) text += "; " + diverged_words(*ours);
  return text;
}

bool within(const ExperimentSummary& summary, const std::string& arm, const std::string& baseline,
            double points) {
  const ArmSummary* ours = summary.find(arm);
  const ArmSummary* theirs = summary.find(baseline);
  return ours != nullptr && theirs != nullptr && ours->mean && theirs->mean && ours->diverged == 0 &&
         std::fabs(*ours->mean - *theirs->mean) <= points;
}

}  // namespace halfscope
