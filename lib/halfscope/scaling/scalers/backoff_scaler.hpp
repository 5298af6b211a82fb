// Back off on overflow, grow after a run of good steps: PyTorch's GradScaler, Apex, TensorFlow, OpenSeq2Seq's
// Backoff; with hysteresis, Megatron and Apex's update_scale_hysteresis. They differ in their constants.
#pragma once

#include <halfscope/scaling/scalers/backoff_state.hpp>

namespace halfscope {

/// torch.amp.GradScaler: no floor, and no ceiling but FP32's.
inline constexpr std::array grad_scaler_options{
    ScalerOption{"initial_scale", 0x1p16}, ScalerOption{"growth_factor", 2},
    ScalerOption{"backoff_factor", 0.5}, ScalerOption{"growth_interval", 2000}};

/// apex.amp's LossScaler, whose factor is 2 whatever it is told.
inline constexpr std::array apex_amp_options{ScalerOption{"initial_scale", 0x1p16},
                                             ScalerOption{"growth_interval", 2000},
                                             ScalerOption{"min_scale", 0}, ScalerOption{"max_scale", 0x1p24}};

/// apex.fp16_utils' DynamicLossScaler.
inline constexpr std::array apex_fp16_utils_options{
    ScalerOption{"initial_scale", 0x1p32}, ScalerOption{"growth_factor", 2},
    ScalerOption{"backoff_factor", 0.5}, ScalerOption{"growth_interval", 1000}, ScalerOption{"min_scale", 1}};

/// TensorFlow's DynamicLossScale.
inline constexpr std::array tensorflow_options{
    ScalerOption{"initial_scale", 0x1p15}, ScalerOption{"growth_factor", 2},
    ScalerOption{"backoff_factor", 0.5}, ScalerOption{"growth_interval", 2000}, ScalerOption{"min_scale", 1}};

/// OpenSeq2Seq's Backoff. Its sources leave the order of counting and comparing open: one step more or less.
inline constexpr std::array openseq2seq_backoff_options{
    ScalerOption{"initial_scale", 0x1p14}, ScalerOption{"growth_factor", 2},
    ScalerOption{"backoff_factor", 0.5},   ScalerOption{"growth_interval", 2000},
    ScalerOption{"min_scale", 1},          ScalerOption{"max_scale", 0x1p14}};

/// Megatron-LM's DynamicGradScaler: growth alone refills the hysteresis, so it counts overflows since the
/// last growth, in a row or not.
inline constexpr std::array megatron_options{ScalerOption{"initial_scale", 0x1p32},
                                             ScalerOption{"growth_factor", 2},
                                             ScalerOption{"backoff_factor", 0.5},
                                             ScalerOption{"growth_interval", 1000},
                                             ScalerOption{"min_scale", 1},
                                             ScalerOption{"hysteresis", 2},
                                             ScalerOption{"consecutive_hysteresis", 0}};

/// Apex's update_scale_hysteresis, as NeMo uses it: any good step refills the hysteresis.
inline constexpr std::array apex_hysteresis_options{
    ScalerOption{"initial_scale", 0x1p16}, ScalerOption{"growth_factor", 2},
    ScalerOption{"backoff_factor", 0.5},   ScalerOption{"growth_interval", 2000},
    ScalerOption{"hysteresis", 2},         ScalerOption{"consecutive_hysteresis", 1}};

/// An overflow spends one unit of hysteresis; once it is spent, every overflow lowers the scale. After
/// growth_interval steps without overflow the scale grows and the count of them begins again.
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

}  // namespace halfscope
