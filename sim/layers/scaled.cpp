// Forward and backward of a product with a constant.
#include "lib/nn/elementwise.hpp"
#include "sim/layers/attention.hpp"

namespace halfscope {

TensorRef scaled(Tape& tape, const std::string& name, TensorRef x, float factor) {
  const Operation operation = tape.operation("mul", name, {&x});
  Array y(tape.value(x).shape());
  scale(tape.value(x).view(), factor, y.values());
  const auto backward = [x, factor](BackwardScope& scope, Array gradient) {
    Array of_x(scope.value(x).shape());
    scale(gradient.view(), factor, of_x.values());
    scope.add_gradient(x, std::move(of_x));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
