// The largest scale at which nothing of the last steps would have overflowed, less a margin: it moves without
// ever needing an overflow.
#pragma once

#include <halfscope/scaling/loss_scaler.hpp>
#include <halfscope/scaling/scale_steps.hpp>

namespace halfscope {

inline constexpr std::array headroom_options{
    ScalerOption{"initial_scale", 0x1p16}, ScalerOption{"margin", 4},         ScalerOption{"history", 20},
    ScalerOption{"min_scale", 1},          ScalerOption{"max_scale", 0x1p32}, ScalerOption{"patience", 10}};

/// Of every step it keeps the limit: the largest power of two by which no weight gradient would have been
/// rounded to infinity, which the largest magnitude decides exactly. The scale is the smallest limit of the
/// last `history` steps, `margin` binades lower; down it goes at once, up only on a full history. An overflow
/// bounds its own step's limit; one that the history did not foresee (activation gradients are larger than
/// the weights', or a gradient grew by more than the margin in one step) widens the margin by a binade, and
/// a thousand good steps take a binade back. `patience` steps in a row that overflow at min_scale throw
/// RuntimeFailure: that is no matter of scaling.
class HeadroomScaler final : public LossScaler {
 public:
  explicit HeadroomScaler(const ScalerSettings& options);
  [[nodiscard]] GradientDetail needs() const override { return GradientDetail::max_abs; }

 private:
  void on_finite(const StepGradients& gradients) override;
  void on_overflow() override;
  std::vector<ScalerNumber> counters() override;
  /// Remembers a step's limit, as its log2, and moves the scale.
  void add(double limit_log2);

  ScaleSteps steps_;
  double margin_, patience_;
  std::vector<double> limits_;  ///< log2, of the last steps; a ring
  double count_ = 0;            ///< of steps, all of them
  double widening_ = 0;         ///< of the margin, binades
  double good_steps_ = 0;       ///< since the last overflow or since the margin narrowed
  double stuck_steps_ = 0;      ///< overflows at the floor in a row
};

}  // namespace halfscope
