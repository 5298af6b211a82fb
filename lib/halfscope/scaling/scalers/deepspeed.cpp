// DeepSpeed's dynamic loss scaler, with either kind of hysteresis.
#include <fmt/format.h>

#include <cmath>

#include <halfscope/scaling/scalers.hpp>
#include <halfscope/scaling/scalers/detail/backoff_state.hpp>

namespace halfscope {
namespace {

class DeepSpeedScaler final : public LossScaler {
 public:
  explicit DeepSpeedScaler(const ScalerSettings& options)
      : LossScaler(options.at("initial_scale")), state_(options) {}
  [[nodiscard]] GradientDetail needs() const override { return GradientDetail::finite; }

 private:
  void on_finite(const StepGradients& gradients) override;
  void on_overflow() override;
  std::vector<ScalerNumber> counters() override { return state_.counters(); }

  BackoffState state_;
};

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

}  // namespace

std::unique_ptr<LossScaler> make_deepspeed(const ScalerSettings& options) {
  return std::make_unique<DeepSpeedScaler>(options);
}

}  // namespace halfscope
