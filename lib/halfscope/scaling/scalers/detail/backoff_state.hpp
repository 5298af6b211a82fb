// Options and state of scalers that back off on overflow, with hysteresis.
#pragma once

#include <halfscope/scaling/loss_scaler.hpp>
#include <halfscope/scaling/scale_steps.hpp>

namespace halfscope {

struct BackoffState {
  /// Without hysteresis among the options every overflow counts.
  explicit BackoffState(const ScalerSettings& options)
      : steps(options),
        growth_interval(options.at("growth_interval")),
        full_hysteresis(option_or(options, "hysteresis", 1)),
        refills_each_step(option_or(options, "consecutive_hysteresis", 0) == 1),
        hysteresis(full_hysteresis) {}

  [[nodiscard]] std::vector<ScalerNumber> counters() {
    return {{"good_steps", &good_steps}, {"hysteresis", &hysteresis}};
  }

  ScaleSteps steps;
  double growth_interval, full_hysteresis;
  bool refills_each_step;
  double good_steps = 0;  ///< since the last overflow
  double hysteresis;      ///< what is left of it
};

}  // namespace halfscope
