// The transitions of DeepSpeed's scaler.
#include <halfscope/scaling/scalers/deepspeed_scaler.hpp>

#include <fmt/format.h>

#include <cmath>

namespace halfscope {

void DeepSpeedScaler::on_finite(const StepGradients& /*gradients*/) {
  if (state_.refills_each_step) state_.hysteresis = state_.full_hysteresis;
  const double stable_steps = state_.good_steps++;
  if (stable_steps == 0 || std::fmod(stable_steps, state_.growth_interval) != 0) return;
  if (!state_.refills_each_step) state_.hysteresis = state_.full_hysteresis;
  scale_ = state_.steps.up(scale_);
}

void DeepSpeedScaler::on_overflow() {
  state_.good_steps = 0;
  if (state_.hysteresis > 1) {
    --state_.hysteresis;
    return;
  }
  if (state_.steps.at_floor(scale_)) {
    throw RuntimeFailure(fmt::format(
        "deepspeed: gradients overflow and the loss scale is at its minimum of {:g} already", scale_));
  }
  scale_ = state_.steps.down(scale_);
}

}  // namespace halfscope
