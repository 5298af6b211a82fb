// Common part of all loss scalers.
#include <halfscope/scaling/loss_scaler.hpp>
#include <halfscope/scaling/scaler_options.hpp>

namespace halfscope {

bool LossScaler::update(const StepGradients& gradients) {
  if (needs() == GradientDetail::none) return false;
  gradients.finite ? on_finite(gradients) : on_overflow();
  return skips(gradients);
}

std::vector<ScalerNumber> LossScaler::numbers() {
  std::vector<ScalerNumber> all{{"scale", &scale_, smallest_scale, largest_scale}};
  for (ScalerNumber& counter : counters()) all.push_back(std::move(counter));
  return all;
}

}  // namespace halfscope
