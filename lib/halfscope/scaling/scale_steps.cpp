// Moves of a loss scale.
#include <halfscope/scaling/scalers/detail/scale_steps.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace halfscope {

ScaleSteps::ScaleSteps(const ScalerSettings& options)
    : growth_factor_(option_or(options, "growth_factor", 2)),
      backoff_factor_(option_or(options, "backoff_factor", 0.5)),
      min_scale_(option_or(options, "min_scale", 0)),
      max_scale_(option_or(options, "max_scale", std::numeric_limits<float>::max())) {}

double ScaleSteps::up(double scale) const {
  const auto grown = static_cast<float>(scale * growth_factor_);
  return std::isfinite(grown) ? std::min<double>(grown, max_scale_) : scale;
}

double ScaleSteps::down(double scale) const {
  return std::max<double>(static_cast<float>(scale * backoff_factor_), min_scale_);
}

double ScaleSteps::clamp(double scale) const {
  return static_cast<float>(std::clamp(scale, min_scale_, max_scale_));
}

}  // namespace halfscope
