// The transitions of DeepSpeed's scaler.
#include <halfscope/scaling/deepspeed_scaler.hpp>

#include <fmt/format.h>

#include <cmath>

namespace halfscope {

DeepSpeedScaler::DeepSpeedScaler(const ScalerSettings& options)
    : LossScaler(options.at("initial_scale")),
      steps_(options),
      growth_interval_(options.at("growth_interval")),
      full_hysteresis_(options.at("hysteresis")),
      consecutive_(options.at("consecutive_hysteresis") == 1),
      hysteresis_(full_hysteresis_) {}

void DeepSpeedScaler::on_finite(const StepGradients& /*gradients*/) {
  if (consecutive_) hysteresis_ = full_hysteresis_;
  const double stable_steps = good_steps_++;
  if (stable_steps == 0 || std::fmod(stable_steps, growth_interval_) != 0) return;
  if (!consecutive_) hysteresis_ = full_hysteresis_;
  scale_ = steps_.up(scale_);
}

void DeepSpeedScaler::on_overflow() {
  good_steps_ = 0;
  if (hysteresis_ > 1) {
    --hysteresis_;
    return;
  }
  if (steps_.at_floor(scale_)) {
    throw RunError(fmt::format(
        "deepspeed: gradients overflow and the loss scale is at its minimum of {:g} already", scale_));
  }
  scale_ = steps_.down(scale_);
}

std::vector<ScalerNumber> DeepSpeedScaler::counters() {
  return {{"good_steps", &good_steps_}, {"hysteresis", &hysteresis_}};
}

}  // namespace halfscope
