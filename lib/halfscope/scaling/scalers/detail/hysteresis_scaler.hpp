// Base of scalers that back off on overflow, with hysteresis: their options and their state.
#pragma once

#include <halfscope/scaling/loss_scaler.hpp>
#include <halfscope/scaling/scalers/detail/scale_steps.hpp>

namespace halfscope {

class HysteresisScaler : public LossScaler {
 public:
  /// Without hysteresis among the options every overflow counts.
  explicit HysteresisScaler(const ScalerSettings& options)
      : LossScaler(options.at("initial_scale")),
        steps_(options),
        growth_interval_(options.at("growth_interval")),
        full_hysteresis_(option_or(options, "hysteresis", 1)),
        refills_each_step_(option_or(options, "consecutive_hysteresis", 0) == 1),
        hysteresis_(full_hysteresis_) {}

  [[nodiscard]] GradientDetail needs() const final { return GradientDetail::finite; }

 protected:
  ScaleSteps steps_;
  double growth_interval_, full_hysteresis_;
  bool refills_each_step_;
  double good_steps_ = 0;  ///< since the last overflow
  double hysteresis_;      ///< remaining

 private:
  std::vector<ScalerNumber> counters() final {
    return {{"good_steps", &good_steps_}, {"hysteresis", &hysteresis_}};
  }
};

}  // namespace halfscope
