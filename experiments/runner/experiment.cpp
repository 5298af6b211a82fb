// Look-ups in an experiment and in its summary.
#include "experiments/runner/experiment.hpp"

#include <algorithm>

namespace halfscope {

const Arm& Experiment::arm(std::string_view arm_name) const {
  return find_in_table("arm of " + name, arm_name, arms);
}

const ArmSummary* ExperimentSummary::find(std::string_view name) const {
  const auto found = std::ranges::find(arms, name, &ArmSummary::arm);
  return found == arms.end() ? nullptr : &*found;
}

}  // namespace halfscope
