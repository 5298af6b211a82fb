// Forward and backward of the hyperbolic tangent.
#include <memory>

#include "lib/nn/elementary.hpp"
#include "lib/nn/strided_elementwise.hpp"
#include "sim/layers/activations.hpp"

namespace halfscope {

TensorRef tanh(Tape& tape, const std::string& name, TensorRef x) {
  const Operation operation = tape.operation("tanh", name, {&x});
  Array y = to_dtype(tape.value(x).clone(), DType::f32);
  apply(Elementary::tanh, y.values(), y.values());
  const auto at = std::make_shared<TensorRef>();
  const auto backward = [x, at](BackwardScope& scope, Array gradient) {
    Array of_x(scope.value(x).shape());
    combine(Combination::tanh_gradient, gradient.view(), scope.value(*at).view(), of_x.values());
    scope.add_gradient(x, std::move(of_x));
  };
  *at = operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
  return *at;
}

}  // namespace halfscope
