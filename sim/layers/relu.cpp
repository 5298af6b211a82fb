// Forward and backward of the rectified linear unit.
#include "sim/layers/activations.hpp"

#include "lib/nn/elementwise.hpp"

namespace halfscope {

TensorRef relu(Tape& tape, const std::string& name, TensorRef x) {
  const Operation operation = tape.operation("relu", name, {&x});
  Array y(tape.value(x).shape(), tape.value(x).dtype());
  relu(tape.value(x).view(), y.view());
  const auto backward = [x](BackwardScope& scope, Array gradient) {
    // x > 0 exactly where y > 0.
    relu_gradient(scope.value(x).view(), gradient.view());
    scope.add_gradient(x, std::move(gradient), Rounds::no);
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
