// Forward and backward of a residual sum.
#include "sim/layers/layers.hpp"

#include <halfscope/kernel/cast/convert.hpp>

#include "lib/nn/elementwise.hpp"

namespace halfscope {

TensorRef add_residual(Tape& tape, const std::string& name, TensorRef branch, TensorRef shortcut) {
  const Operation operation = tape.operation("add", name, {&branch, &shortcut});
  const Array &first = tape.value(branch), &second = tape.value(shortcut);
  if (first.shape() != second.shape()) {
    throw InvalidArgument("layer " + name + ": the branch " + to_string(first.shape()) +
                          " and the shortcut " + to_string(second.shape()) + " differ in shape");
  }
  Array y = to_dtype(first.clone(), DType::f32);
  add(second.view(), y.values());

  const auto backward = [branch, shortcut](BackwardScope& scope, Array gradient) {
    scope.add_gradient(branch, gradient.clone(), Rounds::no);
    scope.add_gradient(shortcut, std::move(gradient), Rounds::no);
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
