// The backward pass: gradients of each operation's inputs, added up, scaled and cast.
#include <utility>

#include "lib/nn/elementwise.hpp"
#include "sim/tape/layer_scale.hpp"
#include "sim/tape/tape.hpp"

namespace halfscope {

const Array& BackwardScope::value(TensorRef tensor) const {
  return tape_->value(tensor);
}

bool BackwardScope::needs_gradient(TensorRef tensor) const {
  return tape_->needs_gradient(tensor);
}

void BackwardScope::add_gradient(TensorRef tensor, Array gradient, Rounds rounds) {
  Tape::Node& node = tape_->nodes_[tensor.index];
  if (!node.needs_gradient) return;
  CastContext from = casts_.context();
  if (node.parameter != nullptr && from.carried_scale != incoming_scale_) {
    // Computed from what the layer has scaled; a weight gradient is not to carry that.
    rescale(gradient, 1 / (from.carried_scale / incoming_scale_));
    from.carried_scale = incoming_scale_;
  }
  tape_->accumulate(node, std::move(gradient), from, rounds);
}

void Tape::accumulate(Node& node, Array gradient, const CastContext& from, Rounds rounds) {
  const bool first = node.gradient.empty();
  double carried = from.carried_scale;
  if (!first) {
    const double largest = caster_->layerwise().value_or(LayerwiseOptions{}).largest;
    carried = bring_to_one_scale({node.gradient, node.carried_scale}, {gradient, carried}, largest);
    gradient = to_dtype(std::move(gradient), DType::f32);
    add(node.gradient.view(), gradient.values());
  }
  node.gradient = std::move(gradient);
  node.carried_scale = carried;
  const bool narrows = from.precision == Precision::fp32 && node.precision == Precision::reduced;
  if (first && rounds == Rounds::no && !narrows) return;
  CastContext own = context(TrainingPass::backward);
  own.precision = node.precision;
  own.carried_scale = carried;
  const Role role = node.parameter != nullptr ? Role::weight_gradient : Role::activation_gradient;
  caster_->cast(node.gradient, node.name, role, own);
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

BackwardScope Tape::scale_gradient(std::size_t index) {
  Node& node = nodes_[index];
  CastContext own = context(TrainingPass::backward);
  own.precision = node.precision;
  own.carried_scale = node.carried_scale;
  const Parameter* weight = caster_->layerwise() ? weight_of(index) : nullptr;
  if (weight != nullptr) {
    const double factor =
        layer_scale(node.gradient, weight->weight(), node.carried_scale, *caster_->layerwise());
    const DType storage = node.gradient.dtype();
    rescale(node.gradient, factor);
    own.carried_scale *= factor;
    // Made larger its numbers stay the format's own, made smaller they may not.
    if (factor < 1) caster_->cast(node.gradient, node.name, Role::activation_gradient, own);
    node.gradient = to_dtype(std::move(node.gradient), storage);
  }
  return {*this, CastScope(*caster_, own), node.carried_scale};
}

void Tape::finish_parameter(Node& node, Precision user) {
  if (node.tied_to) {
    // It has been rounded already, so that alone it stays what it is.
    const CastContext from{.precision = user, .carried_scale = node.carried_scale};
    accumulate(nodes_[*node.tied_to], std::move(node.gradient), from, Rounds::no);
    return;
  }
  rescale(node.gradient, 1 / node.carried_scale);
  Array& sum = node.parameter->gradient;
  if (sum.empty()) {
    sum = std::move(node.gradient);
    return;
  }
  sum = to_dtype(std::move(sum), DType::f32);
  add(node.gradient.view(), sum.values());
}

void Tape::backward(TensorRef loss, float loss_scale) {
  for (const Node& node : nodes_) {
    if (node.parameter != nullptr) node.parameter->gradient = {};
  }
  if (needs_gradient(loss)) accumulate(nodes_[loss.index], Array::from({}, {loss_scale}), {}, Rounds::no);
  Precision ran = Precision::reduced;  // precision of the operation behind a parameter, which is its user
  for (std::size_t i = loss.index + 1; i-- > 0;) {
    if (nodes_[i].gradient.empty()) continue;
    if (nodes_[i].checkpoint) recompute(i, loss);
    Node& node = nodes_[i];
    if (node.parameter != nullptr) {
      finish_parameter(node, ran);
    } else if (node.backward) {
      BackwardScope scope = scale_gradient(i);
      node.backward(scope, std::move(node.gradient));
      ran = node.precision;
    }
  }
}

}  // namespace halfscope
