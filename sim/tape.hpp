// The tape: layer-sized operations in the order in which they ran, each with its hand-written backward.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
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

class Tape;
/// Given the gradient of the output, which in native execution has 16 bits as its format, adds the inputs'
/// gradients through `Tape::add_gradient`.
using Backward = std::function<void(Tape& tape, Array gradient)>;

/// One operation's output, as floats where it rounds; where it does not, in the storage of its input.
struct Operation {
  std::string name;
  Array value;
  Rounds rounds = Rounds::yes;
  Backward backward = nullptr;
};

/// A tensor of a tape without its numbers. `parameter` is null of an operation's output.
struct TapeEntry {
  std::string_view name;
  std::optional<OperationId> operation;  ///< none of a parameter, a cast and what has no `begin`
  Precision precision;                   ///< of its numbers and of its gradient's
  const Parameter* parameter;
  std::int64_t elements;
  std::size_t segment = 0;  ///< from 1, of a tensor that is dropped after the forward pass; 0: it is kept

  [[nodiscard]] OperationKind kind() const {
    return operation ? operation->entry().kind : OperationKind::other;
  }
};

/// Part of a network, from one tensor to another.
using Segment = std::function<TensorRef(Tape& tape, TensorRef x)>;

class Tape {
 public:
  /// `caster` outlives the tape. A chain of blocks on it is cut into `segments` for checkpoints; 0: none.
  Tape(Caster& caster, Phase phase, std::int64_t segments = 0)
      : caster_(&caster), phase_(phase), segments_(segments) {}
  ~Tape() { caster_->compute_in(Precision::reduced); }
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] Caster& caster() { return *caster_; }
  [[nodiscard]] const Caster& caster() const { return *caster_; }
  [[nodiscard]] const PrecisionPolicy& policy() const { return caster_->policy(); }

  /// Data: cast as an activation, without a gradient.
  TensorRef input(std::string name, Array value);
  /// Begins the operation that the next `record` ends, in the layer called `name`: until then, and in its
  /// backward, `policy` is that of the precision in which the policy's lists have it. Each of its `inputs` of
  /// FP32 becomes a cast of it where that is reduced. Throws InvalidArgument for one on the list refuse.
  void begin(OperationId operation, const std::string& name, std::initializer_list<TensorRef*> inputs = {});
  void begin(OperationId operation, const std::string& name, std::span<TensorRef> inputs);
  /// A weight: its working copy is made here, from the master copy. A weight with several users on a tape is
  /// cast once. Its gradients of one precision are added as `add_gradient` adds them, and those of both
  /// precisions, and of each cast where the policy has no cast cache, in FP32. Throws RuntimeFailure
  /// where the master copy was updated since its cast.
  TensorRef parameter(Parameter& parameter);
  /// The output of an operation, cast as an activation where it rounds.
  TensorRef record(Operation operation);

  /// The output of `segment` for x (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016): in
  /// training the tensors before it are dropped, and the backward pass computes them again with the same
  /// bits, which no tracker observes. `segment`, whose last operation is its output, sees parameters and
  /// tensors recorded before it, and is kept as long as the tape.
  TensorRef checkpoint(TensorRef x, Segment segment);
  [[nodiscard]] std::int64_t segments() const { return segments_; }
  /// Whether what runs is a segment once more: running statistics have learnt from it.
  [[nodiscard]] bool recomputing() const { return recomputing_; }

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
  /// A segment to be run again.
  struct Checkpoint {
    std::size_t first = 0;  ///< place of its first tensor
    TensorRef x{};
    Segment segment;
  };

  struct Node {
    std::string name{};
    std::optional<OperationId> operation{};
    Precision precision = Precision::reduced;
    Array value{};
    Array gradient{};
    Backward backward = nullptr;
    Parameter* parameter = nullptr;
    std::optional<std::size_t> tied_to{};  ///< the place on the tape where the parameter's cast was made
    bool needs_gradient = false;
    std::int64_t version = 0;                        ///< of the parameter, when its cast was made
    double carried_scale = 1;                        ///< that the gradient carries besides the loss scale
    std::int64_t dropped = 0;                        ///< elements of a value that a checkpoint has dropped
    std::shared_ptr<const Checkpoint> checkpoint{};  ///< of a segment's output
  };

  /// An operation between `begin` and `record`.
  struct Begun {
    std::optional<OperationId> operation{};
    OperationList list = OperationList::allow;
    Precision precision = Precision::reduced;
  };

  /// Of an operation on the list `list` that sees tensors of such precisions.
  [[nodiscard]] Precision precision_of(OperationList list, std::span<TensorRef const> inputs) const;
  /// x in the formats of the policy's roles, as the layer called `name` sees it.
  TensorRef cast_input(const std::string& name, TensorRef x, std::size_t index);
  /// Where a parameter's cast of `precision` was made, if it is to be used again.
  [[nodiscard]] std::optional<std::size_t> cached(const Parameter& parameter, Precision precision) const;
  /// Casts the master copy to the weight's format, where `precision` is that.
  void make_working_copy(Parameter& parameter, Precision precision);
  /// The matrix or filter among the parameters that were recorded right before operation `index`; null where
  /// it has none.
  [[nodiscard]] const Parameter* weight_of(std::size_t index) const;
  /// Adds a gradient that carries `carried` to the node's, and casts the sum.
  void accumulate(Node& node, Array gradient, double carried, Rounds rounds);
  /// Runs the segment again whose output the backward pass sees next, and drops what it has passed but
  /// `loss`.
  void recompute(std::size_t output, TensorRef loss);
  /// The segment once more, which no tracker observes.
  void run_unobserved(const Checkpoint& checkpoint);
  /// Gives the parameter its gradient, or its first place on the tape a contribution.
  void finish_parameter(Node& node);
  /// Scales what operation `index` is handed, and notes what its contributions carry.
  void begin_backward(std::size_t index);

  Caster* caster_;
  Phase phase_;
  std::int64_t segments_ = 0;
  bool recomputing_ = false;
  std::vector<Node> nodes_;
  Begun begun_{};
  Precision running_ = Precision::reduced;  ///< of the operation whose backward runs
  CarriedScales carried_;                   ///< by what the running backward contributes
};

}  // namespace halfscope
