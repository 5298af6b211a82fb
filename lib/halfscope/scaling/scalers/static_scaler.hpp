// A constant loss scale that never skips a step, as the paper's section 3.2 starts from; 1 is no scaling at
// all.
#pragma once

#include <halfscope/scaling/loss_scaler.hpp>

namespace halfscope {

class StaticScaler final : public LossScaler {
 public:
  explicit StaticScaler(double scale) : LossScaler(scale) {}
  [[nodiscard]] GradientDetail needs() const override { return GradientDetail::none; }

 private:
  void on_finite(const StepGradients& /*gradients*/) override {}
  void on_overflow() override {}
};

}  // namespace halfscope
