// Recording forwards and replaying backwards.
#include "sim/tape.hpp"

#include <halfscope/kernel/elementwise.hpp>

namespace halfscope {

TensorRef Tape::input(std::string name, Array value) {
  caster_->cast(value, name, Role::activation);
  nodes_.push_back({.name = std::move(name), .value = std::move(value)});
  return {nodes_.size() - 1};
}

TensorRef Tape::parameter(Parameter& parameter) {
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
                    .value = std::move(operation.value),
                    .backward = trains ? std::move(operation.backward) : nullptr,
                    .needs_gradient = trains});
  return {nodes_.size() - 1};
}

const Array& Tape::value(TensorRef tensor) const {
  const Node& node = nodes_[tensor.index];
  return node.parameter != nullptr ? node.parameter->weight() : node.value;
}

void Tape::add_gradient(TensorRef tensor, Array gradient, Rounds rounds) {
  Node& node = nodes_[tensor.index];
  if (!node.needs_gradient) return;
  const bool first = node.gradient.empty();
  if (!first) add(node.gradient.values(), gradient.values());
  node.gradient = std::move(gradient);
  if (first && rounds == Rounds::no) return;
  const Role role = node.parameter != nullptr ? Role::weight_gradient : Role::activation_gradient;
  caster_->cast(node.gradient, node.name, role);
}

void Tape::backward(TensorRef loss, float loss_scale) {
  caster_->begin_pass(Pass::backward);
  add_gradient(loss, Array::from({}, {loss_scale}), Rounds::no);
  for (std::size_t i = loss.index + 1; i-- > 0;) {
    Node& node = nodes_[i];
    if (node.gradient.empty()) continue;
    if (node.parameter != nullptr) {
      node.parameter->gradient = std::move(node.gradient);
    } else if (node.backward) {
      node.backward(*this, std::move(node.gradient));
    }
  }
}

}  // namespace halfscope
