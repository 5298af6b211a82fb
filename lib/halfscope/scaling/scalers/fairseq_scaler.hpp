// fairseq's dynamic loss scaler: it lowers the scale where too large a share of steps overflows.
#pragma once

#include <halfscope/scaling/loss_scaler.hpp>
#include <halfscope/scaling/scale_steps.hpp>

namespace halfscope {

/// The constants of its class; its command line starts at 2^7. fairseq tests the norm of all gradients, here
/// every element is tested.
inline constexpr std::array fairseq_options{
    ScalerOption{"initial_scale", 0x1p15}, ScalerOption{"growth_factor", 2},
    ScalerOption{"backoff_factor", 0.5},   ScalerOption{"growth_interval", 2000},
    ScalerOption{"tolerance", 0},          ScalerOption{"min_scale", 1e-4}};

/// The scale grows after every growth_interval steps without overflow. An overflow lowers it where the
/// overflows since the scale last moved are at least `tolerance` of the steps since then. A scale that would
/// reach min_scale stays and throws RuntimeFailure, where fairseq says that the loss is probably exploding.
class FairseqScaler final : public LossScaler {
 public:
  explicit FairseqScaler(const ScalerSettings& options);
  [[nodiscard]] GradientDetail needs() const override { return GradientDetail::finite; }

 private:
  void on_finite(const StepGradients& gradients) override;
  void on_overflow() override;
  std::vector<ScalerNumber> counters() override;

  ScaleSteps steps_;
  double growth_interval_, tolerance_;
  double good_steps_ = 0;
  double steps_since_move_ = 0, overflows_since_move_ = 0;
};

}  // namespace halfscope
