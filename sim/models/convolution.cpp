// Makes and applies convolutions with a bias.
#include "sim/models/convolution.hpp"

#include "sim/layers/layers.hpp"
#include "sim/models/initial.hpp"

namespace halfscope {

Convolution add_convolution(ParameterStore& store, std::uint64_t seed, const ConvolutionSpec& spec) {
  const std::string weight = spec.name + ".weight";
  const float deviation = spec.gain * he_deviation(spec.size * spec.size * spec.in);
  Parameter& w =
      store.add(weight, normal_weights({spec.size, spec.size, spec.in, spec.out}, deviation, seed, weight));
  return {spec.name, {w, &store.add(spec.name + ".bias", constant_weights({spec.out}, 0))}};
}

TensorRef convolve(Tape& tape, TensorRef x, const Convolution& convolution) {
  return conv2d(tape, convolution.name, x, convolution.parameters);
}

TensorRef convolve_relu(Tape& tape, TensorRef x, const Convolution& convolution) {
  return relu(tape, convolution.name + ".relu", convolve(tape, x, convolution));
}

}  // namespace halfscope
