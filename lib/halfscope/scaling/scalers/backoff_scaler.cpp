// The transitions of back-off with hysteresis.
#include <halfscope/scaling/scalers/backoff_scaler.hpp>

namespace halfscope {

void BackoffScaler::on_finite(const StepGradients& /*gradients*/) {
  const bool grows = ++state_.good_steps == state_.growth_interval;
  if (grows) {
    scale_ = state_.steps.up(scale_);
    state_.good_steps = 0;
  }
  if (grows || state_.refills_each_step) state_.hysteresis = state_.full_hysteresis;
}

void BackoffScaler::on_overflow() {
  state_.good_steps = 0;
  if (state_.hysteresis > 0) --state_.hysteresis;
  if (state_.hysteresis == 0) scale_ = state_.steps.down(scale_);
}

}  // namespace halfscope
