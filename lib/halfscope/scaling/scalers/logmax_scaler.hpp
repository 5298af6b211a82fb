// OpenSeq2Seq's LogMax: the scale at which the largest gradient, taken to be log-normal, overflows in one of
// a thousand steps.
#pragma once

#include <halfscope/scaling/loss_scaler.hpp>
#include <halfscope/scaling/scale_steps.hpp>

namespace halfscope {

inline constexpr std::array openseq2seq_logmax_options{
    ScalerOption{"initial_scale", 1}, ScalerOption{"min_scale", 1}, ScalerOption{"max_scale", 0x1p14}};

/// x = log2 max|g|, unscaled, 16 where a gradient is not finite. With bias-corrected exponential means m of x
/// (decay 0.99) and s of x and x^2 (decay 0.999): S = 2^(16 - m - 3.09 sigma), which is seldom a power of
/// two. A step whose gradients are all zero says nothing and is left out of the means.
class LogMaxScaler final : public LossScaler {
 public:
  explicit LogMaxScaler(const ScalerSettings& options);
  [[nodiscard]] GradientDetail needs() const override { return GradientDetail::max_abs; }

 private:
  void on_finite(const StepGradients& gradients) override;
  void on_overflow() override;
  std::vector<ScalerNumber> counters() override;
  void add(double log_max);

  ScaleSteps steps_;
  double count_ = 0;
  double mean_ = 0, slow_mean_ = 0, slow_square_ = 0;  // not yet corrected for having begun at 0
};

}  // namespace halfscope
