// Forward and backward of binary cross entropy.
#include "sim/layers/losses.hpp"

#include <halfscope/kernel/reduce/reduce.hpp>

#include "lib/nn/losses.hpp"

namespace halfscope {

TensorRef sigmoid_cross_entropy(Tape& tape, const std::string& name, TensorRef logits, Array targets) {
  const Operation operation = tape.operation("binary_cross_entropy_with_logits", name, {&logits});
  const Array& x = tape.value(logits);
  if (x.shape() != targets.shape() || x.empty()) {
    throw InvalidArgument("layer " + name + ": targets " + to_string(targets.shape()) +
                          " do not fit logits " + to_string(x.shape()));
  }
  auto kept = std::make_shared<const Array>(std::move(targets));
  const float count = static_cast<float>(x.size());
  Array losses(x.shape());
  sigmoid_losses(FloatsOf(x).values(), kept->values(), losses.values());
  Array loss(Shape{});
  divided_sum(losses.values(), count, ScopedAccumulate{}.model, loss.values());

  const auto backward = [logits, count, kept](BackwardScope& scope, Array gradient) {
    Array x_gradient(kept->shape());
    sigmoid_losses_gradient(scope.floats(logits).values(), kept->values(), {gradient.values(), count},
                            x_gradient.values());
    scope.add_gradient(logits, std::move(x_gradient));
  };
  return operation.record({.value = std::move(loss), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
