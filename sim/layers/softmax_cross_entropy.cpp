// Forward and backward of the classifier's loss.
#include "sim/layers/losses.hpp"

#include <fmt/format.h>

#include <halfscope/kernel/reduce/reduce.hpp>

#include "lib/nn/softmax.hpp"

namespace halfscope {

TensorRef softmax_cross_entropy(Tape& tape, const std::string& name, TensorRef logits,
                                std::span<const std::int32_t> labels, float smoothing) {
  const Operation operation = tape.operation("cross_entropy", name, {&logits});
  if (!(smoothing >= 0 && smoothing < 1)) {
    throw InvalidArgument(fmt::format("layer {}: label smoothing {}: give 0 or more, below 1", name,
                                      static_cast<double>(smoothing)));
  }
  if (tape.phase() == Phase::evaluation) smoothing = 0;
  const Array& x = tape.value(logits);
  auto probability = std::make_shared<Array>(x.shape());
  Array row_loss({static_cast<std::int64_t>(labels.size())});
  const AccumulateModel fp32_sums = ScopedAccumulate{}.model;
  softmax_cross_entropy(FloatsOf(x).values(), labels,
                        tape.phase() == Phase::training ? operation.policy().reductions_in(name) : fp32_sums,
                        probability->values(), row_loss.values());
  smooth_losses(FloatsOf(x).values(), labels, smoothing, row_loss.values());
  const float rows = static_cast<float>(labels.size());
  Array loss(Shape{});
  divided_sum(row_loss.values(), rows, fp32_sums, loss.values());

  const auto backward = [logits, rows, probability, smoothing,
                         target = std::vector(labels.begin(), labels.end())](BackwardScope& scope,
                                                                             Array gradient) {
    smooth_probability(target, smoothing, probability->values());
    softmax_cross_entropy_gradient(target, {gradient.values(), rows}, probability->values());
    scope.add_gradient(logits, std::move(*probability));
  };
  return operation.record({.value = std::move(loss), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
