// Forward and backward of the binary cross entropy of probabilities.
#include "sim/layers/losses.hpp"

#include <memory>

#include <halfscope/kernel/reduce/reduce.hpp>

#include "lib/nn/losses.hpp"

namespace halfscope {

TensorRef binary_cross_entropy(Tape& tape, const std::string& name, TensorRef probability, Array targets) {
  const Operation operation = tape.operation("binary_cross_entropy", name, {&probability});
  const Array& p = tape.value(probability);
  if (p.shape() != targets.shape() || p.empty()) {
    throw InvalidArgument("layer " + name + ": targets " + to_string(targets.shape()) +
                          " do not fit probabilities " + to_string(p.shape()));
  }
  const auto kept = std::make_shared<const Array>(std::move(targets));
  const float count = static_cast<float>(p.size());
  Array losses(p.shape());
  probability_losses(FloatsOf(p).values(), kept->values(), losses.values());
  Array loss(Shape{});
  divided_sum(losses.values(), count, ScopedAccumulate{}.model, loss.values());

  const auto backward = [probability, count, kept](BackwardScope& scope, Array gradient) {
    Array of_p(kept->shape());
    probability_losses_gradient(scope.floats(probability).values(), kept->values(),
                                {gradient.values(), count}, of_p.values());
    scope.add_gradient(probability, std::move(of_p));
  };
  return operation.record({.value = std::move(loss), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
