// Makes and applies convolutions with batch norm.
#include "sim/models/parts/normalised_convolution.hpp"

#include "sim/models/parts/initial.hpp"
#include "sim/models/parts/model_options.hpp"

namespace halfscope {

Parameter& add_filter(ParameterStore& store, const ModelSpec& model, const std::string& name,
                      const Shape& shape) {
  const std::string weight = name + ".weight";
  const float deviation = he_deviation(shape.at(0) * shape.at(1) * shape.at(2));
  return store.add(weight, layer_weights(model, shape, deviation, weight));
}

BatchNormParameters add_batch_norm(ParameterStore& store, const ModelSpec& model, const std::string& name,
                                   std::int64_t channels, float gamma) {
  return {.gamma = store.add(name + ".gamma", constant_weights({channels}, gamma)),
          .beta = store.add(name + ".beta", constant_weights({channels}, 0)),
          .running_mean = store.add_buffer(name + ".running_mean", constant_weights({channels}, 0)),
          .running_variance = store.add_buffer(name + ".running_variance", constant_weights({channels}, 1)),
          .epsilon = model.fp32(batch_norm_epsilon_option)};
}

NormalisedConvolution add_normalised_convolution(ParameterStore& store, const ModelSpec& model,
                                                 const NormalisedConvolutionSpec& spec) {
  Parameter& weight =
      add_filter(store, model, spec.convolution_name, {spec.size, spec.size, spec.in, spec.out});
  return {spec.convolution_name,
          spec.norm_name,
          {.weight = weight, .stride = spec.stride},
          add_batch_norm(store, model, spec.norm_name, spec.out, spec.gamma)};
}

TensorRef convolve(Tape& tape, TensorRef x, const NormalisedConvolution& layers) {
  x = conv2d(tape, layers.convolution_name, x, layers.convolution);
  return batch_norm(tape, layers.norm_name, x, layers.norm);
}

}  // namespace halfscope
