// Checks, products and gradients of recurrent layers.
#include "sim/layers/recurrent.hpp"

#include <halfscope/kernel/elementwise.hpp>

#include "sim/layers/matrix.hpp"

namespace halfscope {

RecurrentExtents recurrent_extents(const Tape& tape, const std::string& name, TensorRef x,
                                   const RecurrentParameters& parameters, std::int64_t gates) {
  const Shape& input = tape.value(x).shape();
  const Shape& weight = parameters.hidden_weight.master.shape();
  const bool fits = input.size() == 3 && input[0] > 0 && weight.size() == 2 && weight[1] == gates * weight[0];
  if (!fits) {
    throw RequestError("layer " + name + ": input " + to_string(input) + " and hidden weight " +
                       to_string(weight) + "; give (time, batch, in) and (hidden, " + std::to_string(gates) +
                       " hidden)");
  }
  return {input[0], input[1], weight[0], gates};
}

std::span<float> at_time(Array& array, std::int64_t t) {
  const std::size_t size = array.size() / static_cast<std::size_t>(array.extent(0));
  return array.values().subspan(static_cast<std::size_t>(t) * size, size);
}

std::span<const float> at_time(const Array& array, std::int64_t t) {
  const std::size_t size = array.size() / static_cast<std::size_t>(array.extent(0));
  return array.values().subspan(static_cast<std::size_t>(t) * size, size);
}

ConstColumns gate_columns(const RecurrentExtents& extents, std::span<const float> gates, std::int64_t first) {
  return {gates, first * extents.hidden, static_cast<std::int64_t>(gates.size()) / extents.batch};
}

Columns gate_columns(const RecurrentExtents& extents, std::span<float> gates, std::int64_t first) {
  return {gates, first * extents.hidden, static_cast<std::int64_t>(gates.size()) / extents.batch};
}

ColumnExtents gate_extents(const RecurrentExtents& extents, std::int64_t gates) {
  return {extents.batch, gates * extents.hidden};
}

void project_state(const Tape& tape, const HiddenWeights& weights, std::span<const float> state,
                   std::span<float> projection) {
  multiply_rows(state, tape.value(weights.weight), tape.policy().products, projection);
  add_to_rows(tape.value(weights.bias).values(), projection);
}

void add_hidden_gradients(Tape& tape, const HiddenWeights& weights, const Array& states,
                          const Array& projection_gradient) {
  const Shape shape = tape.value(weights.weight).shape();
  tape.add_gradient(weights.bias, bias_gradient(projection_gradient.values(), shape[1]));
  const std::size_t state = states.size() / static_cast<std::size_t>(states.extent(0));
  const std::size_t gates = projection_gradient.size() / static_cast<std::size_t>(states.extent(0));
  const RowProduct product{states.values().first(states.size() - state),
                           projection_gradient.values().subspan(gates), shape[0], shape[1]};
  tape.add_gradient(weights.weight, product.x.empty() ? Array::zeros(shape)
                                                      : weight_gradient(product, tape.policy().products));
}

}  // namespace halfscope
