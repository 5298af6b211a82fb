// PopART's automatic loss scaling: by the share of the gradients in the upper eighth of FP16's range.
#pragma once

#include <halfscope/scaling/loss_scaler.hpp>
#include <halfscope/scaling/scale_steps.hpp>

namespace halfscope {

/// PopART's user gives the first scale; here it is GradScaler's.
inline constexpr std::array popart_options{
    ScalerOption{"initial_scale", 0x1p16}, ScalerOption{"growth_factor", 2},
    ScalerOption{"backoff_factor", 0.5}, ScalerOption{"tolerance", 1e-7}};

/// Every step moves the scale: down where more than `tolerance` of the elements are 65504/8 or more in
/// magnitude, not finite ones included, else up. So it never rests, and needs no overflow. A step that does
/// overflow is skipped, as with every scaler here.
class PopartScaler final : public LossScaler {
 public:
  explicit PopartScaler(const ScalerSettings& options);
  [[nodiscard]] GradientDetail needs() const override { return GradientDetail::histogram; }

 private:
  void on_finite(const StepGradients& gradients) override;
  void on_overflow() override;

  ScaleSteps steps_;
  double tolerance_;
};

}  // namespace halfscope
