// Back off on overflow, grow after a run of good steps: the rule of torch.amp.GradScaler.
#pragma once

#include <halfscope/scaling/loss_scaler.hpp>

namespace halfscope {

struct DynamicScalerOptions {
  double initial_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;  ///< good steps before the scale grows
};

/// A step with a non-finite gradient is skipped and the scale multiplied by the back-off factor; after
/// `growth_interval` good steps in a row it grows, unless it would leave FP32's range. There is no floor.
class DynamicScaler final : public LossScaler {
 public:
  explicit DynamicScaler(const DynamicScalerOptions& options)
      : options_(options), state_{.scale = options.initial_scale} {}
  [[nodiscard]] double scale() const override { return state_.scale; }
  [[nodiscard]] bool checks_gradients() const override { return true; }
  bool update(const StepGradients& gradients) override;
  [[nodiscard]] LossScalerState state() const override { return state_; }
  void restore(const LossScalerState& state) override { state_ = state; }

 private:
  DynamicScalerOptions options_;
  LossScalerState state_;
};

}  // namespace halfscope
