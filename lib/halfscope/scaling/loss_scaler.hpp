// Loss scalers: state machines that choose the factor the loss is multiplied by before the backward pass.
#pragma once

#include <cstdint>

namespace halfscope {

/// What a scaler learns of a step; gradients are the weight gradients, still scaled.
struct StepGradients {
  bool finite = true;  ///< every element
};

/// Everything that a scaler remembers: enough to continue from a checkpoint.
struct LossScalerState {
  double scale = 1;
  std::int64_t good_steps = 0;  ///< since the last overflow or growth
};

class LossScaler {
 public:
  virtual ~LossScaler() = default;
  /// The factor for the next step.
  [[nodiscard]] virtual double scale() const = 0;
  /// Whether `update` looks at the gradients; where it does not, nobody needs to check them.
  [[nodiscard]] virtual bool checks_gradients() const = 0;
  /// Takes note of a step; true where its weight update must be skipped.
  virtual bool update(const StepGradients& gradients) = 0;

  [[nodiscard]] virtual LossScalerState state() const = 0;
  virtual void restore(const LossScalerState& state) = 0;
};

}  // namespace halfscope
