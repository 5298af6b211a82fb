// The tape: layer-sized operations in the order in which they ran, each with its hand-written backward.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/cast.hpp"
#include "sim/parameter.hpp"

namespace halfscope {

/// A tensor on a tape.
struct TensorRef {
  std::size_t index = 0;
};

/// Training computes gradients and batch statistics; evaluation uses the running ones and keeps nothing.
enum class Phase : std::uint8_t { training, evaluation };

/// Whether an operation can make numbers that its inputs' format does not hold; a maximum or a copy cannot.
enum class Rounds : std::uint8_t { yes, no };

class Tape;
/// Given the gradient of the output, adds the inputs' gradients through `Tape::add_gradient`.
using Backward = std::function<void(Tape& tape, Array gradient)>;

/// One operation's output.
struct Operation {
  std::string name;
  Array value;
  Rounds rounds = Rounds::yes;
  Backward backward = nullptr;
};

class Tape {
 public:
  /// `caster` outlives the tape.
  Tape(Caster& caster, Phase phase) : caster_(&caster), phase_(phase) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] Caster& caster() { return *caster_; }
  [[nodiscard]] const PrecisionPolicy& policy() const { return caster_->policy(); }

  /// Data: cast as an activation, without a gradient.
  TensorRef input(std::string name, Array value);
  /// A weight: its working copy is made here, from the master copy.
  TensorRef parameter(Parameter& parameter);
  /// The output of an operation, cast as an activation where it rounds.
  TensorRef record(Operation operation);

  [[nodiscard]] const Array& value(TensorRef tensor) const;
  [[nodiscard]] bool needs_gradient(TensorRef tensor) const { return nodes_[tensor.index].needs_gradient; }

  /// A contribution to the gradient of `tensor`, cast to its role's format where it rounds. Several
  /// contributions are added in FP32 in the order in which they come, the last user's first, and cast again
  /// after each add.
  void add_gradient(TensorRef tensor, Array gradient, Rounds rounds = Rounds::yes);

  /// Runs every backward from `loss` (a scalar) up, whose own gradient is the loss scale. Parameters receive
  /// theirs.
  void backward(TensorRef loss, float loss_scale);

 private:
  struct Node {
    std::string name{};
    Array value{};
    Array gradient{};
    Backward backward = nullptr;
    Parameter* parameter = nullptr;
    bool needs_gradient = false;
  };

  Caster* caster_;
  Phase phase_;
  std::vector<Node> nodes_;
};

}  // namespace halfscope
