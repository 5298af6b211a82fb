// Back off on overflow, grow after a run of steps without: the rule of PyTorch's GradScaler, Apex,
// TensorFlow, OpenSeq2Seq's Backoff and, with hysteresis, Megatron-LM. They differ in their options.
#include <halfscope/scaling/scalers.hpp>
#include <halfscope/scaling/scalers/detail/backoff_state.hpp>

namespace halfscope {
namespace {

class BackoffScaler final : public LossScaler {
 public:
  explicit BackoffScaler(const ScalerSettings& options)
      : LossScaler(options.at("initial_scale")), state_(options) {}
  [[nodiscard]] GradientDetail needs() const override { return GradientDetail::finite; }

 private:
  void on_finite(const StepGradients& gradients) override;
  void on_overflow() override;
  std::vector<ScalerNumber> counters() override { return state_.counters(); }

  BackoffState state_;
};

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

}  // namespace

std::unique_ptr<LossScaler> make_backoff(const ScalerSettings& options) {
  return std::make_unique<BackoffScaler>(options);
}

}  // namespace halfscope
