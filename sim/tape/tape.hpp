// The tape: layer-sized operations in the order in which they ran, each with its hand-written backward.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/tape/operation.hpp"

namespace halfscope {

/// A tensor of a tape without its numbers. `parameter` is null of an operation's output.
struct TapeEntry {
  std::string_view name;
  std::optional<OperationId> operation;  ///< none of a parameter and of an input's cast
  Precision precision;                   ///< precision of its numbers and of its gradient
  const Parameter* parameter;
  std::int64_t elements;
  std::size_t segment = 0;  ///< from 1, of a tensor that is dropped after the forward pass; 0: it is kept

  [[nodiscard]] OperationKind kind() const {
    return operation ? operation->entry().kind : OperationKind::other;
  }
};

/// Part of a network, from one tensor to another.
using Segment = std::function<TensorRef(Tape& tape, TensorRef x)>;

struct TapeOptions {
  std::int64_t segments = 0;              ///< into which checkpoints cut a chain of blocks; 0: none
  std::int32_t micro_batch = whole_step;  ///< place in the step, from 0; each has random bits of its own
};

class Tape {
 public:
  /// `caster` outlives the tape.
  Tape(Caster& caster, Phase phase, const TapeOptions& options = {})
      : caster_(&caster), phase_(phase), options_(options) {}
  ~Tape() = default;
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] const Caster& caster() const { return *caster_; }
  [[nodiscard]] const TapeOptions& options() const { return options_; }
  /// Random bits of this step and micro-batch for the purpose called `name`.
  [[nodiscard]] RandomStream random_stream(std::string_view name) const {
    return caster_->random_stream(name, options_.micro_batch);
  }

  /// Data: cast as an activation, without a gradient.
  TensorRef input(const std::string& name, Array value);
  /// An operation of the layer called `name`, in the precision in which the policy's lists have it. Each of
  /// its `inputs` of FP32 becomes a cast of it if that is reduced. Throws InvalidArgument for one on the list
  /// refuse.
  Operation operation(OperationId id, const std::string& name, std::initializer_list<TensorRef*> inputs = {});
  Operation operation(OperationId id, const std::string& name, std::span<TensorRef> inputs);

  /// The output of `segment` for x (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016): in
  /// training the tensors before it are dropped, and the backward pass computes them again with the same
  /// bits, which no tracker observes. `segment`, whose last operation is its output, sees parameters and
  /// tensors recorded before it, and is kept as long as the tape.
  TensorRef checkpoint(TensorRef x, Segment segment);
  /// Whether what runs is a segment once more: running statistics have learnt from it.
  [[nodiscard]] bool recomputing() const { return recomputing_; }

  [[nodiscard]] const Array& value(TensorRef tensor) const;
  /// Its numbers as floats, whatever their storage.
  [[nodiscard]] FloatsOf floats(TensorRef tensor) const { return FloatsOf(value(tensor)); }
  /// All that has been recorded, in that order: a layer's parameters before its output.
  [[nodiscard]] std::vector<TapeEntry> entries() const;
  [[nodiscard]] bool needs_gradient(TensorRef tensor) const { return nodes_[tensor.index].needs_gradient; }

  /// Runs every backward from `loss` (a scalar) up, whose own gradient is the loss scale. Parameters receive
  /// theirs. Where the caster has a layer-wise scale, a layer with a weight matrix multiplies its incoming
  /// gradient by a power of two, which the activations' gradients carry on; weight gradients are rounded as
  /// they carry what came in, and divided by it.
  void backward(TensorRef loss, float loss_scale);

 private:
  friend class BackwardScope;
  friend class Operation;

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
    std::int64_t version = 0;  ///< the parameter's version when its cast was made
    double carried_scale = 1;  ///< a scale that the gradient carries besides the loss scale
    std::int64_t dropped = 0;  ///< elements of a value that a checkpoint has dropped
    std::shared_ptr<const Checkpoint> checkpoint{};  ///< the segment's, at its output
  };

  /// The context of casts that belong to no operation, in the formats of the policy's roles.
  [[nodiscard]] CastContext context(TrainingPass pass = TrainingPass::forward) const {
    return {.pass = pass, .micro_batch = options_.micro_batch};
  }
  /// The precision of an operation on the list `list` that sees such tensors.
  [[nodiscard]] Precision precision_of(OperationList list, std::span<TensorRef* const> inputs) const;
  Operation make_operation(OperationId id, const std::string& name, std::span<TensorRef* const> inputs);
  /// x in the formats of the policy's roles, as the layer called `name` sees it.
  TensorRef cast_input(const std::string& name, TensorRef x, std::size_t index);
  TensorRef append(Node node);
  /// The place of a parameter's cast of `precision`, if it is to be used again.
  [[nodiscard]] std::optional<std::size_t> cached(const Parameter& parameter, Precision precision) const;
  /// Runs the segment again whose output the backward pass sees next, and drops what it has passed but
  /// `loss`.
  void recompute(std::size_t output, TensorRef loss);
  /// The segment once more, which no tracker observes.
  void run_unobserved(const Checkpoint& checkpoint);

  /// The matrix or filter among the parameters that were recorded right before operation `index`; null if it
  /// has none.
  [[nodiscard]] const Parameter* weight_of(std::size_t index) const;
  /// Scales what operation `index` is handed.
  [[nodiscard]] BackwardScope scale_gradient(std::size_t index);
  /// Adds a gradient of an operation with the precision and carried scale of `from`, and casts the sum.
  void accumulate(Node& node, Array gradient, const CastContext& from, Rounds rounds);
  /// Gives the parameter its gradient, or its first place on the tape a contribution from a user in
  /// precision `user`.
  void finish_parameter(Node& node, Precision user);

  Caster* caster_;
  Phase phase_;
  TapeOptions options_;
  bool recomputing_ = false;
  std::vector<Node> nodes_;
};

}  // namespace halfscope
