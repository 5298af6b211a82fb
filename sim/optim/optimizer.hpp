// Optimizers: turn a parameter's unscaled gradient into the update that is added to its master copy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <halfscope/core/array.hpp>
#include <halfscope/format/quantizer.hpp>

#include "sim/parameter.hpp"

namespace halfscope {

/// What an optimizer may be told; each takes what it knows.
struct OptimizerOptions {
  double momentum = 0.9;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  Quantizer state{};  ///< the format of state and of the update's arithmetic
};

/// One array of an optimizer's state, by name, for checkpoints.
struct OptimizerState {
  std::string name;
  Array* array = nullptr;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Called once before the parameters of a step that is not skipped.
  virtual void begin_step(double learning_rate) = 0;
  /// The update of the parameter at `index` from its unscaled `gradient`; to be added to the weights.
  virtual void compute(std::size_t index, const Array& gradient, Array& update) = 0;
  [[nodiscard]] virtual std::vector<OptimizerState> state() = 0;
  /// Steps taken, skipped ones not counted.
  [[nodiscard]] virtual std::int64_t steps() const = 0;
  virtual void restore_steps(std::int64_t steps) = 0;
};

}  // namespace halfscope
