// Forward and backward of the logistic function.
#include <memory>

#include "lib/nn/elementary.hpp"
#include "lib/nn/strided_elementwise.hpp"
#include "sim/layers/activations.hpp"

namespace halfscope {

TensorRef sigmoid(Tape& tape, const std::string& name, TensorRef x) {
  tape.begin("sigmoid", name, {&x});
  Array y = to_dtype(tape.value(x).clone(), DType::f32);
  apply(Elementary::sigmoid, y.values(), y.values());
  const auto at = std::make_shared<TensorRef>();
  const auto backward = [x, at](Tape& t, Array gradient) {
    Array of_x(t.value(x).shape());
    combine(Combination::sigmoid_gradient, gradient.view(), t.value(*at).view(), of_x.values());
    t.add_gradient(x, std::move(of_x));
  };
  *at = tape.record({.name = name, .value = std::move(y), .rounds = Rounds::yes, .backward = backward});
  return *at;
}

}  // namespace halfscope
