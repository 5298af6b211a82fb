// An operation of a layer while it is recorded: its precision, its parameters, its output.
#pragma once

#include <string>

#include <halfscope/policy/policy.hpp>

#include "sim/tape/backward_scope.hpp"
#include "sim/tape/parameter.hpp"

namespace halfscope {

/// The output of an operation, as floats if it rounds; if it does not, in the storage of its input.
struct OperationOutput {
  Array value;
  Rounds rounds = Rounds::yes;
  Backward backward = nullptr;
};

/// Made by `Tape::operation`, which it does not outlive. A tape takes parameters and outputs from operations
/// alone, so that each has the precision in which the policy's lists have its operation.
class [[nodiscard]] Operation {
 public:
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation() = default;

  [[nodiscard]] const PrecisionPolicy& policy() const { return casts_.policy(); }
  [[nodiscard]] const CastScope& casts() const { return casts_; }
  [[nodiscard]] const Array& value(TensorRef tensor) const;
  /// The formats that the policy gives to the operands of the layer's products.
  [[nodiscard]] LayerOperands operands() const {
    return operands_of(policy().operands, listed_.id, listed_.layer);
  }
  /// Whether a backward pass follows that wants the gradient of `tensor`.
  [[nodiscard]] bool needs_gradient(TensorRef tensor) const;

  /// A weight: its working copy is made here, from the master copy. A weight with several users on a tape is
  /// cast once. Its gradients of one precision are added as `BackwardScope::add_gradient` adds them, and
  /// those of both precisions, and of each cast if the policy has no cast cache, in FP32. Throws
  /// RuntimeFailure if the master copy was updated since its cast.
  TensorRef parameter(Parameter& parameter) const;
  /// The operation's output, cast as an activation if it rounds.
  TensorRef record(OperationOutput output) const;

 private:
  friend class Tape;
  /// An entry of the policy's lists, in the layer called `layer`.
  struct Listed {
    OperationId id;
    OperationList list;
    std::string layer;
  };
  Operation(Tape& tape, Listed listed, const CastScope& casts)
      : tape_(&tape), listed_(std::move(listed)), casts_(casts) {}

  /// Casts the master copy to the weight's format.
  void make_working_copy(Parameter& parameter) const;

  Tape* tape_;
  Listed listed_;
  CastScope casts_;
};

}  // namespace halfscope
