// Makes and applies convolutions with a bias.
#include "sim/models/parts/convolution.hpp"

#include "sim/layers/layers.hpp"
#include "sim/models/parts/initial.hpp"

namespace halfscope {

Convolution add_convolution(ParameterStore& store, const ModelSpec& model, const ConvolutionSpec& spec) {
  const std::string weight = spec.name + ".weight";
  const std::int64_t in = spec.in / spec.groups;
  const float deviation = spec.gain * he_deviation(spec.size * spec.size * in);
  Parameter& w =
      store.add(weight, layer_weights(model, {spec.size, spec.size, in, spec.out}, deviation, weight));
  Parameter& bias = store.add(spec.name + ".bias", constant_weights({spec.out}, spec.bias));
  return {
      spec.name,
      {.weight = w, .bias = &bias, .stride = spec.stride, .padding = spec.padding, .groups = spec.groups}};
}

TensorRef convolve(Tape& tape, TensorRef x, const Convolution& convolution) {
  return conv2d(tape, convolution.name, x, convolution.parameters);
}

TensorRef convolve_relu(Tape& tape, TensorRef x, const Convolution& convolution) {
  return relu(tape, convolution.name + ".relu", convolve(tape, x, convolution));
}

}  // namespace halfscope
