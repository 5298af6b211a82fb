// Makes and applies convolutions with batch norm.
#include "sim/models/normalised_convolution.hpp"

#include "sim/models/initial.hpp"

namespace halfscope {

NormalisedConvolution add_normalised_convolution(ParameterStore& store, const ModelSpec& model,
                                                 const NormalisedConvolutionSpec& spec) {
  const std::string weight = spec.convolution_name + ".weight";
  const float deviation = he_deviation(spec.size * spec.size * spec.in);
  const Shape channels{spec.out};
  Parameter& w =
      store.add(weight, layer_weights(model, {spec.size, spec.size, spec.in, spec.out}, deviation, weight));
  return {spec.convolution_name,
          spec.norm_name,
          {.weight = w, .stride = spec.stride},
          {.gamma = store.add(spec.norm_name + ".gamma", constant_weights(channels, 1)),
           .beta = store.add(spec.norm_name + ".beta", constant_weights(channels, 0)),
           .running_mean = store.add_buffer(spec.norm_name + ".running_mean", constant_weights(channels, 0)),
           .running_variance =
               store.add_buffer(spec.norm_name + ".running_variance", constant_weights(channels, 1)),
           .epsilon = model.batch_norm_epsilon}};
}

TensorRef convolve(Tape& tape, TensorRef x, const NormalisedConvolution& layers) {
  x = conv2d(tape, layers.convolution_name, x, layers.convolution);
  return batch_norm(tape, layers.norm_name, x, layers.norm);
}

}  // namespace halfscope
