// Makes and runs the parts of a transformer's layers.
#include "sim/models/parts/transformer_block.hpp"

#include <algorithm>
#include <cmath>

#include "sim/models/parts/initial.hpp"

namespace halfscope {
namespace {

LinearParameters add_matrix(ParameterStore& store, const ModelSpec& model, const std::string& name,
                            const Shape& shape, float deviation) {
  if (deviation == 0) deviation = 1 / std::sqrt(static_cast<float>(shape[0]));
  const std::string weight = name + ".weight";
  Parameter& w = store.add(weight, layer_weights(model, shape, deviation, weight));
  return {w, store.add(name + ".bias", constant_weights({shape[1]}, 0))};
}

}  // namespace

LayerNormParameters add_layer_norm(ParameterStore& store, const std::string& name, std::int64_t width,
                                   float epsilon) {
  Parameter& gamma = store.add(name + ".gamma", constant_weights({width}, 1));
  return {gamma, store.add(name + ".beta", constant_weights({width}, 0)), epsilon};
}

FeedForward add_feed_forward(ParameterStore& store, const ModelSpec& model, const FeedForwardSpec& spec) {
  const LinearParameters inner =
      add_matrix(store, model, spec.name + ".inner", {spec.width, spec.hidden}, spec.deviation);
  return {spec.name, inner,
          add_matrix(store, model, spec.name + ".outer", {spec.hidden, spec.width}, spec.deviation)};
}

TensorRef feed_forward(Tape& tape, const FeedForward& network, TensorRef x,
                       FeedForwardActivation activation) {
  const std::string& name = network.name;
  x = linear(tape, name + ".inner", x, network.inner);
  x = activation == FeedForwardActivation::relu ? relu(tape, name + ".relu", x)
                                                : gelu(tape, name + ".gelu", x);
  return linear(tape, name + ".outer", x, network.outer);
}

Array sinusoids(const Shape& shape, float amplitude) {
  Array positions(shape, Device::cpu);
  const std::int64_t time = shape[1], width = shape[2];
  float* to = positions.data();
  for (std::int64_t t = 0; t < time; ++t) {
    for (std::int64_t column = 0; column < width; ++column) {
      const double exponent = static_cast<double>(column / 2 * 2) / static_cast<double>(width);
      const double angle = static_cast<double>(t) / std::pow(1e4, exponent);
      *to++ = amplitude * static_cast<float>(column % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  for (std::int64_t example = 1; example < shape[0]; ++example)
    to = std::copy_n(positions.data(), time * width, to);
  return positions.to(active_device());
}

}  // namespace halfscope
