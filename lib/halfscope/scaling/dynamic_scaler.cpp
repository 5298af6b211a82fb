// The transitions of the dynamic loss scaler.
#include <halfscope/scaling/dynamic_scaler.hpp>

#include <limits>

namespace halfscope {

bool DynamicScaler::update(const StepGradients& gradients) {
  if (!gradients.finite) {
    state_ = {.scale = state_.scale * options_.backoff_factor, .good_steps = 0};
    return true;
  }
  if (++state_.good_steps == options_.growth_interval) {
    const double grown = state_.scale * options_.growth_factor;
    if (grown <= static_cast<double>(std::numeric_limits<float>::max())) state_.scale = grown;
    state_.good_steps = 0;
  }
  return false;
}

}  // namespace halfscope
