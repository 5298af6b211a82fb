// Recording forwards and replaying backwards.
#include "sim/tape.hpp"

#include <algorithm>

#include "lib/nn/elementwise.hpp"

namespace halfscope {
namespace {

void divide(Array& gradient, double divisor) {
  rescale(gradient, 1 / divisor);
}

}  // namespace

TensorRef Tape::input(std::string name, Array value) {
  caster_->cast(value, name, Role::activation);
  nodes_.push_back({.name = std::move(name), .kind = OperationKind::input, .value = std::move(value)});
  return {nodes_.size() - 1};
}

TensorRef Tape::parameter(Parameter& parameter) {
  const auto first = std::ranges::find(nodes_, &parameter, &Node::parameter);
  if (first != nodes_.end()) {
    nodes_.push_back({.name = parameter.name,
                      .parameter = &parameter,
                      .tied_to = static_cast<std::size_t>(first - nodes_.begin()),
                      .needs_gradient = first->needs_gradient});
    return {nodes_.size() - 1};
  }
  if (policy().quantizer(Role::weight).is_identity()) {
    parameter.working = {};  // what a tape of another policy may have left
  } else {
    parameter.working = parameter.master.clone();
    caster_->cast(parameter.working, parameter.name, Role::weight);
  }
  nodes_.push_back(
      {.name = parameter.name, .parameter = &parameter, .needs_gradient = phase_ == Phase::training});
  return {nodes_.size() - 1};
}

TensorRef Tape::record(Operation operation) {
  if (operation.rounds == Rounds::yes) caster_->cast(operation.value, operation.name, Role::activation);
  const bool trains = phase_ == Phase::training;
  nodes_.push_back({.name = std::move(operation.name),
                    .kind = operation.kind,
                    .value = std::move(operation.value),
                    .backward = trains ? std::move(operation.backward) : nullptr,
                    .needs_gradient = trains});
  return {nodes_.size() - 1};
}

const Array& Tape::value(TensorRef tensor) const {
  const Node& node = nodes_[tensor.index];
  return node.parameter != nullptr ? node.parameter->weight() : node.value;
}

std::vector<TapeEntry> Tape::entries() const {
  std::vector<TapeEntry> entries;
  entries.reserve(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    entries.push_back({node.name, node.kind, node.parameter, static_cast<std::int64_t>(value({i}).size())});
  }
  return entries;
}

void Tape::add_gradient(TensorRef tensor, Array gradient, Rounds rounds) {
  Node& node = nodes_[tensor.index];
  if (!node.needs_gradient) return;
  const double carried = node.parameter != nullptr ? carried_.weight : carried_.activation;
  // Computed from what the layer has scaled; a weight gradient is not to carry that.
  if (carried != carried_.activation) divide(gradient, carried_.activation / carried);
  accumulate(node, std::move(gradient), carried, rounds);
}

void Tape::accumulate(Node& node, Array gradient, double carried, Rounds rounds) {
  const bool of_weight = node.parameter != nullptr, first = node.gradient.empty();
  if (!first) {
    const double largest = caster_->layerwise().value_or(LayerwiseOptions{}).largest;
    carried = bring_to_one_scale({node.gradient, node.carried_scale}, {gradient, carried}, largest);
    gradient = to_dtype(std::move(gradient), DType::f32);
    add(node.gradient.view(), gradient.values());
  }
  node.gradient = std::move(gradient);
  node.carried_scale = carried;
  if (first && rounds == Rounds::no) return;
  caster_->carry(carried);
  caster_->cast(node.gradient, node.name, of_weight ? Role::weight_gradient : Role::activation_gradient);
  caster_->carry(carried_.activation);
}

const Parameter* Tape::weight_of(std::size_t index) const {
  const Parameter* largest = nullptr;
  while (index-- > 0 && nodes_[index].parameter != nullptr) {
    const Parameter* parameter = nodes_[index].parameter;
    if (parameter->master.shape().size() < 2) continue;
    if (largest == nullptr || parameter->master.size() > largest->master.size()) largest = parameter;
  }
  return largest;
}

void Tape::begin_backward(std::size_t index) {
  Node& node = nodes_[index];
  carried_ = {node.carried_scale, node.carried_scale};
  caster_->carry(node.carried_scale);
  const Parameter* weight = caster_->layerwise() ? weight_of(index) : nullptr;
  if (weight == nullptr) return;
  const double factor =
      layer_scale(node.gradient, weight->weight(), node.carried_scale, *caster_->layerwise());
  if (factor == 1) return;
  const DType storage = node.gradient.dtype();
  rescale(node.gradient, factor);
  carried_.activation *= factor;
  caster_->carry(carried_.activation);
  // Made larger its numbers stay the format's own, made smaller they may not.
  if (factor < 1) caster_->cast(node.gradient, node.name, Role::activation_gradient);
  node.gradient = to_dtype(std::move(node.gradient), storage);
}

void Tape::finish_parameter(Node& node) {
  if (node.tied_to) {
    // It has been rounded already, so that alone it stays what it is.
    accumulate(nodes_[*node.tied_to], std::move(node.gradient), node.carried_scale, Rounds::no);
    return;
  }
  divide(node.gradient, node.carried_scale);
  node.parameter->gradient = std::move(node.gradient);
}

void Tape::backward(TensorRef loss, float loss_scale) {
  caster_->begin_pass(TrainingPass::backward);
  carried_ = {};
  add_gradient(loss, Array::from({}, {loss_scale}), Rounds::no);
  for (std::size_t i = loss.index + 1; i-- > 0;) {
    Node& node = nodes_[i];
    if (node.gradient.empty()) continue;
    if (node.parameter != nullptr) {
      finish_parameter(node);
    } else if (node.backward) {
      begin_backward(i);
      node.backward(*this, std::move(node.gradient));
    }
  }
  caster_->carry(1);
}

}  // namespace halfscope
