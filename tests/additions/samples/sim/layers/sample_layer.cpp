// A layer as a newcomer would add it: y = x x, element by element, with its backward.
#include "lib/nn/elementwise.hpp"
#include "lib/nn/strided_elementwise.hpp"
#include "sim/layers/layers.hpp"

namespace halfscope {

TensorRef sample_layer(Tape& tape, const std::string& name, TensorRef x) {
  const Operation operation = tape.operation("mul", name, {&x});
  Array y(tape.value(x).shape());
  combine(Combination::product, tape.value(x).view(), tape.value(x).view(), y.values());
  const auto backward = [x](BackwardScope& scope, Array gradient) {
    Array of_x(scope.value(x).shape());
    combine(Combination::product, gradient.view(), scope.value(x).view(), of_x.values());
    scale(of_x.values(), 2, of_x.values());
    scope.add_gradient(x, std::move(of_x));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
