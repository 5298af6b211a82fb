// Forward and backward of a product with a constant.
#include "lib/nn/elementwise.hpp"
#include "sim/layers/attention.hpp"

namespace halfscope {

TensorRef scaled(Tape& tape, const std::string& name, TensorRef x, float factor) {
  tape.begin("mul", name, {&x});
  Array y(tape.value(x).shape());
  scale(tape.value(x).view(), factor, y.values());
  const auto backward = [x, factor](Tape& t, Array gradient) {
    Array of_x(t.value(x).shape());
    scale(gradient.view(), factor, of_x.values());
    t.add_gradient(x, std::move(of_x));
  };
  return tape.record({.name = name, .value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
