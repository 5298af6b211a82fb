// Checks, products and gradients of recurrent layers.
#include "sim/layers/recurrent.hpp"

#include "lib/nn/elementwise.hpp"

#include "sim/layers/matrix.hpp"

namespace halfscope {

RecurrentExtents recurrent_extents(const Tape& tape, const std::string& name, TensorRef x,
                                   const RecurrentParameters& parameters, std::int64_t gates,
                                   const Parameter* projection) {
  const Shape& input = tape.value(x).shape();
  const Shape& weight = parameters.hidden_weight.master.shape();
  if (projection != nullptr) {
    const Shape& projected = projection->master.shape();
    if (input.size() == 3 && input[0] > 0 && projected.size() == 2 &&
        weight == Shape{projected[1], gates * projected[0]}) {
      return {input[0], input[1], projected[0], gates, projected[1]};
    }
    throw InvalidArgument("layer " + name + ": input " + to_string(input) + ", hidden weight " +
                          to_string(weight) + " and projection " + to_string(projected) +
                          "; give (time, batch, in), (state, " + std::to_string(gates) +
                          " hidden) and (hidden, state)");
  }
  const bool fits = input.size() == 3 && input[0] > 0 && weight.size() == 2 && weight[1] == gates * weight[0];
  if (!fits) {
    throw InvalidArgument("layer " + name + ": input " + to_string(input) + " and hidden weight " +
                          to_string(weight) + "; give (time, batch, in) and (hidden, " +
                          std::to_string(gates) + " hidden)");
  }
  return {input[0], input[1], weight[0], gates, weight[0]};
}

ConstArrayView at_time(const Array& array, std::int64_t t) {
  const std::size_t size = array.size() / static_cast<std::size_t>(array.extent(0));
  return array.view().part(static_cast<std::size_t>(t) * size, size);
}

ArrayView at_time(Array& array, std::int64_t t) {
  const std::size_t size = array.size() / static_cast<std::size_t>(array.extent(0));
  return array.view().part(static_cast<std::size_t>(t) * size, size);
}

TimeSteps::TimeSteps(Array& array) : array_(array) {
  if (array.dtype() == DType::f32) return;
  buffer_ = Array(Shape(array.shape().begin() + 1, array.shape().end()));
}

std::span<float> TimeSteps::at(std::int64_t t) {
  return array_.dtype() == DType::f32 ? at_time(array_, t).floats() : buffer_.values();
}

void TimeSteps::store(std::int64_t t) {
  if (array_.dtype() != DType::f32) convert(buffer_.view(), at_time(array_, t));
}

ConstColumns gate_columns(const RecurrentExtents& extents, const ConstArrayView& gates, std::int64_t first) {
  return {gates, first * extents.hidden, static_cast<std::int64_t>(gates.size()) / extents.batch};
}

Columns gate_columns(const RecurrentExtents& extents, std::span<float> gates, std::int64_t first) {
  return gate_columns(extents, ArrayView(gates), first);
}

Columns gate_columns(const RecurrentExtents& extents, const ArrayView& gates, std::int64_t first) {
  return {gates, first * extents.hidden, static_cast<std::int64_t>(gates.size()) / extents.batch};
}

ColumnExtents gate_extents(const RecurrentExtents& extents, std::int64_t gates) {
  return {extents.batch, gates * extents.hidden};
}

void project_state(const Operation& operation, const HiddenWeights& weights, const ConstArrayView& state,
                   std::span<float> projection) {
  multiply_rows(state, operation.value(weights.weight), operation.policy().products, projection);
  add_to_rows(operation.value(weights.bias).view(), projection);
}

void add_hidden_gradients(BackwardScope& scope, const HiddenWeights& weights, const Array& states,
                          const Array& projection_gradient) {
  const Shape shape = scope.value(weights.weight).shape();
  scope.add_gradient(weights.bias, bias_gradient(projection_gradient.view(), shape[1]));
  const std::size_t state = states.size() / static_cast<std::size_t>(states.extent(0));
  const std::size_t gates = projection_gradient.size() / static_cast<std::size_t>(states.extent(0));
  const RowProduct product{states.view().part(0, states.size() - state),
                           projection_gradient.view().part(gates, projection_gradient.size() - gates),
                           shape[0], shape[1]};
  scope.add_gradient(weights.weight, product.x.empty() ? Array::zeros(shape)
                                                       : weight_gradient(product, scope.policy().products));
}

}  // namespace halfscope
