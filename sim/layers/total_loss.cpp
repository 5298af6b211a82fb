// Forward and backward of a sum of losses.
#include "sim/layers/layers.hpp"

#include "lib/nn/elementwise.hpp"

namespace halfscope {

TensorRef total_loss(Tape& tape, const std::string& name, std::span<const TensorRef> losses) {
  if (losses.empty()) throw InvalidArgument("layer " + name + ": give at least one loss");
  Array sum = Array::zeros({});
  for (const TensorRef loss : losses) {
    const Array& value = tape.value(loss);
    if (!value.shape().empty()) {
      throw InvalidArgument("layer " + name + ": a loss is a scalar, not " + to_string(value.shape()));
    }
    add(value.values(), sum.values());
  }
  const auto backward = [parts = std::vector(losses.begin(), losses.end())](Tape& t, Array gradient) {
    for (const TensorRef part : parts) t.add_gradient(part, gradient.clone(), Rounds::no);
  };
  return tape.record({.name = name, .value = std::move(sum), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
