// Look-ups in an experiment.
#include "experiments/definition/experiment.hpp"

namespace halfscope {

const Arm& Experiment::arm(std::string_view arm_name) const {
  return find_in_table("arm of " + name, arm_name, arms);
}

}  // namespace halfscope
