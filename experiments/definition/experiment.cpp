// Look-ups in an experiment.
#include "experiments/definition/experiment.hpp"

#include <algorithm>

namespace halfscope {

bool Experiment::has_arm(std::string_view arm_name) const {
  return std::ranges::find(arms, arm_name, &Arm::name) != arms.end();
}

const Arm& Experiment::arm(std::string_view arm_name) const {
  return find_in_table("arm of " + name, arm_name, arms);
}

}  // namespace halfscope
