// Back off on overflow, grow after a run of steps without: the rule of PyTorch's GradScaler, Apex,
// TensorFlow, OpenSeq2Seq's Backoff and, with hysteresis, Megatron-LM. They differ in their options.
#include <halfscope/scaling/scalers.hpp>
#include <halfscope/scaling/scalers/detail/hysteresis_scaler.hpp>

namespace halfscope {
namespace {

class BackoffScaler final : public HysteresisScaler {
 public:
  using HysteresisScaler::HysteresisScaler;

 private:
  void on_finite(const StepGradients& gradients) override;
  void on_overflow() override;
};

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

}  // namespace

std::unique_ptr<LossScaler> make_backoff(const ScalerSettings& options) {
  return std::make_unique<BackoffScaler>(options);
}

}  // namespace halfscope
