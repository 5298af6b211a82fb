// DeepSpeed's dynamic loss scaler, with either kind of hysteresis.
#include <fmt/format.h>

#include <cmath>

#include <halfscope/scaling/scalers.hpp>
#include <halfscope/scaling/scalers/detail/hysteresis_scaler.hpp>

namespace halfscope {
namespace {

class DeepSpeedScaler final : public HysteresisScaler {
 public:
  using HysteresisScaler::HysteresisScaler;

 private:
  void on_finite(const StepGradients& gradients) override;
  void on_overflow() override;
};

void DeepSpeedScaler::on_finite(const StepGradients& /*gradients*/) {
  if (refills_each_step_) hysteresis_ = full_hysteresis_;
  const double stable_steps = good_steps_++;
  if (stable_steps == 0 || std::fmod(stable_steps, growth_interval_) != 0) return;
  if (!refills_each_step_) hysteresis_ = full_hysteresis_;
  scale_ = steps_.up(scale_);
}

void DeepSpeedScaler::on_overflow() {
  good_steps_ = 0;
  if (hysteresis_ > 1) {
    --hysteresis_;
    return;
  }
  if (steps_.at_floor(scale_)) {
    throw RuntimeFailure(fmt::format(
        "deepspeed: gradients overflow and the loss scale is at its minimum of {:g} already", scale_));
  }
  scale_ = steps_.down(scale_);
}

}  // namespace

std::unique_ptr<LossScaler> make_deepspeed(const ScalerSettings& options) {
  return std::make_unique<DeepSpeedScaler>(options);
}

}  // namespace halfscope
