// Records operations, and runs dropped segments again.
#include "sim/tape/tape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace halfscope {
namespace {

InvalidArgument refusal(std::string_view operation, const std::string& layer) {
  return InvalidArgument(
      fmt::format("layer {}: automatic mixed precision refuses {}, whose gradient overflows FP16; compute it "
                  "from logits, or set deny = {}",
                  layer, operation, operation));
}

}  // namespace

Precision Tape::precision_of(OperationList list, std::span<TensorRef* const> inputs) const {
  if (list != OperationList::infer)
    return list == OperationList::allow ? Precision::reduced : Precision::fp32;
  // Without inputs it reads parameters alone, such as the rows of an embedding.
  const bool stored_fp32 = inputs.empty() && caster_->policy().parameters == StoredParameters::fp32;
  const bool wide = std::any_of(inputs.begin(), inputs.end(), [&](const TensorRef* input) {
    return nodes_[input->index].precision == Precision::fp32;
  });
  return wide || stored_fp32 ? Precision::fp32 : Precision::reduced;
}

TensorRef Tape::cast_input(const std::string& name, TensorRef x, std::size_t index) {
  Array copy = to_dtype(value(x).clone(), DType::f32);
  const std::string own = name + ".cast" + (index == 0 ? "" : std::to_string(index));
  caster_->cast(copy, own, Role::activation, context());
  const bool trains = needs_gradient(x);
  Backward backward = nullptr;
  if (trains)
    backward = [x](BackwardScope& scope, Array gradient) { scope.add_gradient(x, std::move(gradient)); };
  return append(
      {.name = own, .value = std::move(copy), .backward = std::move(backward), .needs_gradient = trains});
}

TensorRef Tape::append(Node node) {
  nodes_.push_back(std::move(node));
  return {nodes_.size() - 1};
}

Operation Tape::make_operation(OperationId id, const std::string& name, std::span<TensorRef* const> inputs) {
  const OperationList list = caster_->policy().list_of(id, name);
  if (list == OperationList::refuse) throw refusal(id.entry().name, name);
  CastContext own = context();
  own.precision = precision_of(list, inputs);
  for (std::size_t i = 0; i < inputs.size() && own.precision == Precision::reduced; ++i) {
    TensorRef& input = *inputs[i];
    if (nodes_[input.index].precision == Precision::fp32) input = cast_input(name, input, i);
  }
  return {*this, {id, list, name}, CastScope(*caster_, own)};
}

Operation Tape::operation(OperationId id, const std::string& name, std::initializer_list<TensorRef*> inputs) {
  return make_operation(id, name, {inputs.begin(), inputs.size()});
}

Operation Tape::operation(OperationId id, const std::string& name, std::span<TensorRef> inputs) {
  std::vector<TensorRef*> pointers;
  for (TensorRef& input : inputs) pointers.push_back(&input);
  return make_operation(id, name, pointers);
}

TensorRef Tape::input(const std::string& name, Array value) {
  const TensorRef data = operation("input", name).record({.value = std::move(value)});
  nodes_[data.index].needs_gradient = false;
  return data;
}

std::optional<std::size_t> Tape::cached(const Parameter& parameter, Precision precision) const {
  const auto found = std::ranges::find_if(
      nodes_, [&](const Node& node) { return node.parameter == &parameter && node.precision == precision; });
  if (found == nodes_.end()) return std::nullopt;
  if (found->version != parameter.version)
    throw RuntimeFailure("parameter " + parameter.name +
                         " was updated after its cast for this forward pass; " +
                         "end the pass before the update");
  return found - nodes_.begin();
}

const Array& Tape::value(TensorRef tensor) const {
  const Node& node = nodes_[tensor.index];
  if (node.parameter == nullptr) return node.value;
  return node.precision == Precision::fp32 ? node.parameter->master : node.parameter->weight();
}

std::vector<TapeEntry> Tape::entries() const {
  std::vector<TapeEntry> entries;
  entries.reserve(nodes_.size());
  std::size_t segment = 1;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    const bool kept = node.dropped == 0;
    entries.push_back({node.name, node.operation, node.precision, node.parameter,
                       kept ? static_cast<std::int64_t>(value({i}).size()) : node.dropped,
                       kept ? 0 : segment});
    if (node.checkpoint) ++segment;
  }
  return entries;
}

TensorRef Tape::checkpoint(TensorRef x, Segment segment) {
  const std::size_t first = nodes_.size();
  const TensorRef y = segment(*this, x);
  if (phase_ == Phase::evaluation || y.index < first) return y;
  if (y.index + 1 != nodes_.size()) throw RuntimeFailure("a checkpoint's last operation is not its output");
  for (std::size_t i = first; i < nodes_.size(); ++i) {
    nodes_[i].backward = nullptr;
    if (i == y.index) break;
    nodes_[i].dropped = static_cast<std::int64_t>(nodes_[i].value.size());
    nodes_[i].value = {};
  }
  nodes_[y.index].checkpoint = std::make_shared<const Checkpoint>(Checkpoint{first, x, std::move(segment)});
  return y;
}

void Tape::recompute(std::size_t output, TensorRef loss) {
  const std::shared_ptr<const Checkpoint> own = nodes_[output].checkpoint;
  const auto first = nodes_.begin() + static_cast<std::ptrdiff_t>(own->first);
  std::vector<Node> earlier(std::make_move_iterator(first), std::make_move_iterator(nodes_.end()));
  nodes_.resize(own->first);
  for (std::size_t i = output + 1; i < own->first + earlier.size(); ++i) {
    earlier[i - own->first].backward = nullptr;
    if (i != loss.index) earlier[i - own->first].value = {};
  }
  run_unobserved(*own);
  if (nodes_.size() != output + 1)
    throw RuntimeFailure("a checkpoint's segment is another when it runs again");
  for (std::size_t i = own->first; i <= output; ++i) {
    nodes_[i].gradient = std::move(earlier[i - own->first].gradient);
    nodes_[i].carried_scale = earlier[i - own->first].carried_scale;
  }
  for (std::size_t i = output + 1 - own->first; i < earlier.size(); ++i)
    nodes_.push_back(std::move(earlier[i]));
}

void Tape::run_unobserved(const Checkpoint& checkpoint) {
  TrackerList nobody;
  Caster unobserved(*caster_, nobody);
  struct Restored {
    Tape& tape;
    Caster* observed;
    ~Restored() {
      tape.caster_ = observed;
      tape.recomputing_ = false;
    }
  } const restored{*this, std::exchange(caster_, &unobserved)};
  recomputing_ = true;
  (void)checkpoint.segment(*this, checkpoint.x);
}

}  // namespace halfscope
