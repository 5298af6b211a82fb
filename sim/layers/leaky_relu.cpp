// Forward and backward of the leaky rectified linear unit.
#include <fmt/format.h>

#include <cmath>

#include "lib/nn/elementwise.hpp"
#include "sim/layers/activations.hpp"

namespace halfscope {

TensorRef leaky_relu(Tape& tape, const std::string& name, TensorRef x, float slope) {
  const Operation operation = tape.operation("leaky_relu", name, {&x});
  if (!std::isfinite(slope)) {
    throw InvalidArgument(
        fmt::format("layer {}: slope {}; give a finite number", name, static_cast<double>(slope)));
  }
  Array y = to_dtype(tape.value(x).clone(), DType::f32);
  scale_unless_positive(y.view(), slope, y.values());
  const auto backward = [x, slope](BackwardScope& scope, Array gradient) {
    // The sign is that of x: y may be a negative number's product that became 0.
    Array of_x = to_dtype(std::move(gradient), DType::f32);
    scale_unless_positive(scope.value(x).view(), slope, of_x.values());
    scope.add_gradient(x, std::move(of_x));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
