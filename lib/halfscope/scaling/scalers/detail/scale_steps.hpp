// How a loss scale moves: by factors, between a floor and a ceiling.
#pragma once

#include <halfscope/scaling/scaler_options.hpp>

namespace halfscope {

/// The scale is a number of FP32, as the loss that it multiplies: every move rounds it to one.
class ScaleSteps {
 public:
  /// Reads growth_factor, backoff_factor, min_scale and max_scale; what a scaler lacks does not limit it.
  explicit ScaleSteps(const ScalerSettings& options);
  /// One growth_factor up, at most max_scale; a scale that would leave FP32's range stays.
  [[nodiscard]] double up(double scale) const;
  /// One backoff_factor down, at least min_scale.
  [[nodiscard]] double down(double scale) const;
  [[nodiscard]] double clamp(double scale) const;
  [[nodiscard]] bool at_floor(double scale) const { return scale <= min_scale_; }

 private:
  double growth_factor_, backoff_factor_, min_scale_, max_scale_;
};

}  // namespace halfscope
