// A constant loss scale that never skips a step, as the paper's section 3.2 starts from; 1 is no scaling at
// all.
#pragma once

#include <halfscope/scaling/loss_scaler.hpp>

namespace halfscope {

class StaticScaler final : public LossScaler {
 public:
  explicit StaticScaler(double scale) : scale_(scale) {}
  [[nodiscard]] double scale() const override { return scale_; }
  [[nodiscard]] bool checks_gradients() const override { return false; }
  bool update(const StepGradients& /*gradients*/) override { return false; }
  [[nodiscard]] LossScalerState state() const override { return {.scale = scale_}; }
  void restore(const LossScalerState& state) override { scale_ = state.scale; }

 private:
  double scale_;
};

}  // namespace halfscope
