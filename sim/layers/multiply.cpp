// Forward and backward of the product of two tensors, element by element.
#include "lib/nn/strided_elementwise.hpp"
#include "sim/layers/layers.hpp"

namespace halfscope {

TensorRef multiply(Tape& tape, const std::string& name, TensorRef a, TensorRef b) {
  const Operation operation = tape.operation("mul", name, {&a, &b});
  const Array &left = tape.value(a), &right = tape.value(b);
  if (left.shape() != right.shape()) {
    throw InvalidArgument("layer " + name + ": the factors " + to_string(left.shape()) + " and " +
                          to_string(right.shape()) + " differ in shape");
  }
  Array y(left.shape());
  combine(Combination::product, left.view(), right.view(), y.values());

  const auto backward = [a, b](BackwardScope& scope, Array gradient) {
    for (const auto& [factor, other] : {std::pair{a, b}, std::pair{b, a}}) {
      Array of_factor(gradient.shape());
      combine(Combination::product, gradient.view(), scope.value(other).view(), of_factor.values());
      scope.add_gradient(factor, std::move(of_factor));
    }
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
