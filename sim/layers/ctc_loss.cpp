// Forward and backward of connectionist temporal classification.
#include "sim/layers/losses.hpp"

#include <memory>

#include <halfscope/kernel/reduce/reduce.hpp>

namespace halfscope {
namespace {

/// Tensors of the forward pass that the backward pass reads.
struct CtcSaved {
  CtcTargets targets;
  Quantizer stored;
  Array log_probability, alpha, losses;

  [[nodiscard]] CtcPaths paths() { return {log_probability.values(), alpha.values()}; }
};

CtcExtents extents_of(const std::string& name, const Shape& logits) {
  if (logits.size() == 3 && logits[0] > 0 && logits[1] > 0 && logits[2] > 1)
    return {logits[0], logits[1], logits[2]};
  throw InvalidArgument("layer " + name + ": logits " + to_string(logits) +
                        "; give (time, batch, labels), of which the first is the blank");
}

/// FP32 in an evaluation, which measures the weights and not its own sums.
Quantizer path_format(Phase phase, const Operation& operation, const std::string& name) {
  if (phase == Phase::evaluation) return {};
  return {.format = operation.policy().reductions_in(name).format};
}

}  // namespace

TensorRef ctc_loss(Tape& tape, const std::string& name, TensorRef logits, const LabelSequences& targets) {
  const Operation operation = tape.operation("ctc_loss", name, {&logits});
  const Array& x = tape.value(logits);
  CtcTargets checked(targets, extents_of(name, x.shape()));
  const CtcExtents e = checked.extents();
  const auto saved = std::make_shared<CtcSaved>(
      CtcSaved{std::move(checked), path_format(tape.phase(), operation, name), Array(x.shape()),
               Array({e.time, e.batch, e.states}), Array({e.batch})});
  ctc_losses(FloatsOf(x).values(), saved->targets, saved->stored, saved->paths(), saved->losses.values());
  const auto utterances = static_cast<float>(e.batch);
  Array loss(Shape{});
  divided_sum(saved->losses.values(), utterances, ScopedAccumulate{}.model, loss.values());

  const auto backward = [logits, utterances, saved](BackwardScope& scope, Array gradient) {
    ctc_losses_gradient(saved->targets, saved->stored, {gradient.values(), utterances},
                        saved->losses.values(), saved->paths());
    scope.add_gradient(logits, std::move(saved->log_probability));
  };
  return operation.record({.value = std::move(loss), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
