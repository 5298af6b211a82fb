// The backward pass of one operation: its formats, the tensors that it reads, and the gradients that it adds.
#pragma once

#include <functional>

#include <halfscope/kernel/cast/convert.hpp>

#include "sim/tape/cast_scope.hpp"
#include "sim/tape/tensor.hpp"

namespace halfscope {

class Tape;

/// Made by `Tape::backward` for each operation, in the precision of its forward pass.
class BackwardScope {
 public:
  BackwardScope(const BackwardScope&) = delete;
  BackwardScope& operator=(const BackwardScope&) = delete;
  ~BackwardScope() = default;

  [[nodiscard]] const PrecisionPolicy& policy() const { return casts_.policy(); }
  [[nodiscard]] const CastScope& casts() const { return casts_; }
  [[nodiscard]] const Array& value(TensorRef tensor) const;
  /// Its numbers as floats, whatever their storage.
  [[nodiscard]] FloatsOf floats(TensorRef tensor) const { return FloatsOf(value(tensor)); }
  [[nodiscard]] bool needs_gradient(TensorRef tensor) const;

  /// A contribution to the gradient of `tensor`, cast to its role's format if it rounds. Several
  /// contributions are added in FP32 in the order in which they come, the last user's first, and cast again
  /// after each add.
  void add_gradient(TensorRef tensor, Array gradient, Rounds rounds = Rounds::yes);

 private:
  friend class Tape;
  /// `incoming_scale` is what the operation's gradient carried before its layer-wise scale, which the
  /// context's carried scale includes.
  BackwardScope(Tape& tape, const CastScope& casts, double incoming_scale)
      : tape_(&tape), casts_(casts), incoming_scale_(incoming_scale) {}

  Tape* tape_;
  CastScope casts_;
  double incoming_scale_;
};

/// Given the gradient of the output, which in native execution has 16 bits as its format, adds the inputs'
/// gradients through `BackwardScope::add_gradient`.
using Backward = std::function<void(BackwardScope& scope, Array gradient)>;

}  // namespace halfscope
