// The tape: layer-sized operations in the order in which they ran, each with its hand-written backward.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <halfscope/kernel/cast/convert.hpp>

#include "sim/cast.hpp"
#include "sim/layer_scale.hpp"
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

/// Of an operation: what counts of memory tell apart.
enum class OperationKind : std::uint8_t {
  input,
  convolution,
  linear,
  residual_sum,
  normalisation,
  activation,
  pooling,
  recurrent,
  embedding,
  loss,
  other,
};
template <>
inline constexpr std::array<std::string_view, 11> enum_names<OperationKind>{
    "input",   "convolution", "linear",    "residual_sum", "normalisation", "activation",
    "pooling", "recurrent",   "embedding", "loss",         "other"};

class Tape;
/// Given the gradient of the output, which in native execution has 16 bits as its format, adds the inputs'
/// gradients through `Tape::add_gradient`.
using Backward = std::function<void(Tape& tape, Array gradient)>;

/// One operation's output, as floats where it rounds; where it does not, in the storage of its input.
struct Operation {
  std::string name;
  OperationKind kind = OperationKind::other;
  Array value;
  Rounds rounds = Rounds::yes;
  Backward backward = nullptr;
};

/// A tensor of a tape without its numbers. `parameter` is null of an operation's output.
struct TapeEntry {
  std::string_view name;
  OperationKind kind;
  const Parameter* parameter;
  std::int64_t elements;
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
  /// A weight: its working copy is made here, from the master copy. A weight with several users on a tape
  /// (tied weights) is cast once, and its gradients are added as `add_gradient` adds them.
  TensorRef parameter(Parameter& parameter);
  /// The output of an operation, cast as an activation where it rounds.
  TensorRef record(Operation operation);

  [[nodiscard]] const Array& value(TensorRef tensor) const;
  /// Its numbers as floats, whatever their storage.
  [[nodiscard]] FloatsOf floats(TensorRef tensor) const { return FloatsOf(value(tensor)); }
  /// All that has been recorded, in that order: a layer's parameters before its output.
  [[nodiscard]] std::vector<TapeEntry> entries() const;
  [[nodiscard]] bool needs_gradient(TensorRef tensor) const { return nodes_[tensor.index].needs_gradient; }

  /// A contribution to the gradient of `tensor`, cast to its role's format where it rounds. Several
  /// contributions are added in FP32 in the order in which they come, the last user's first, and cast again
  /// after each add.
  void add_gradient(TensorRef tensor, Array gradient, Rounds rounds = Rounds::yes);

  /// Runs every backward from `loss` (a scalar) up, whose own gradient is the loss scale. Parameters receive
  /// theirs. Where the caster has a layer-wise scale, a layer with a weight matrix multiplies its incoming
  /// gradient by a power of two, which the activations' gradients carry on; weight gradients are rounded as
  /// they carry what came in, and divided by it.
  void backward(TensorRef loss, float loss_scale);

 private:
  struct Node {
    std::string name{};
    OperationKind kind = OperationKind::other;
    Array value{};
    Array gradient{};
    Backward backward = nullptr;
    Parameter* parameter = nullptr;
    std::optional<std::size_t> tied_to{};  ///< the parameter's first place on the tape, of the others
    bool needs_gradient = false;
    double carried_scale = 1;  ///< that the gradient carries besides the loss scale
  };

  /// The matrix or filter among the parameters that were recorded right before operation `index`; null where
  /// it has none.
  [[nodiscard]] const Parameter* weight_of(std::size_t index) const;
  /// Adds a gradient that carries `carried` to the node's, and casts the sum.
  void accumulate(Node& node, Array gradient, double carried, Rounds rounds);
  /// Gives the parameter its gradient, or its first place on the tape a contribution.
  void finish_parameter(Node& node);
  /// Scales what operation `index` is handed, and notes what its contributions carry.
  void begin_backward(std::size_t index);

  Caster* caster_;
  Phase phase_;
  std::vector<Node> nodes_;
  CarriedScales carried_;  ///< by what the running backward contributes
};

}  // namespace halfscope
