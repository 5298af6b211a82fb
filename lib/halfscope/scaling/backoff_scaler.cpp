// The transitions of back-off with hysteresis.
#include <halfscope/scaling/backoff_scaler.hpp>

namespace halfscope {

BackoffScaler::BackoffScaler(const ScalerSettings& options)
    : LossScaler(options.at("initial_scale")),
      steps_(options),
      growth_interval_(options.at("growth_interval")),
      full_hysteresis_(option_or(options, "hysteresis", 1)),
      refills_each_step_(option_or(options, "consecutive_hysteresis", 0) == 1),
      hysteresis_(full_hysteresis_) {}

void BackoffScaler::on_finite(const StepGradients& /*gradients*/) {
  const bool grows = ++good_steps_ == growth_interval_;
  if (grows) {
    scale_ = steps_.up(scale_);
    good_steps_ = 0;
  }
  if (grows || refills_each_step_) hysteresis_ = full_hysteresis_;
}

void BackoffScaler::on_overflow() {
  good_steps_ = 0;
  if (hysteresis_ > 0) --hysteresis_;
  if (hysteresis_ == 0) scale_ = steps_.down(scale_);
}

std::vector<ScalerNumber> BackoffScaler::counters() {
  return {{"good_steps", &good_steps_}, {"hysteresis", &hysteresis_}};
}

}  // namespace halfscope
