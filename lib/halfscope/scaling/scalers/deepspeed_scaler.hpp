// DeepSpeed's dynamic loss scaler, with either kind of hysteresis.
#pragma once

#include <halfscope/scaling/scalers/backoff_state.hpp>

namespace halfscope {

inline constexpr std::array deepspeed_options{ScalerOption{"initial_scale", 0x1p16},
                                              ScalerOption{"growth_factor", 2},
                                              ScalerOption{"backoff_factor", 0.5},
                                              ScalerOption{"growth_interval", 1000},
                                              ScalerOption{"min_scale", 1},
                                              ScalerOption{"hysteresis", 2},
                                              ScalerOption{"consecutive_hysteresis", 0}};

/// The same with consecutive_hysteresis: any good step refills it, and growth does not.
inline constexpr std::array deepspeed_consecutive_options{ScalerOption{"initial_scale", 0x1p16},
                                                          ScalerOption{"growth_factor", 2},
                                                          ScalerOption{"backoff_factor", 0.5},
                                                          ScalerOption{"growth_interval", 1000},
                                                          ScalerOption{"min_scale", 1},
                                                          ScalerOption{"hysteresis", 2},
                                                          ScalerOption{"consecutive_hysteresis", 1}};

/// Good steps are counted from the last overflow and growth does not begin the count again: the scale grows
/// after growth_interval + 1 of them, then after every further growth_interval. The last unit of hysteresis
/// is never spent, so that after the first lowering every overflow lowers. An overflow at min_scale throws
/// RuntimeFailure, where DeepSpeed raises "already at minimum".
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

}  // namespace halfscope
