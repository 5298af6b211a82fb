// A convolution without bias and the batch norm behind it.
#pragma once

#include "sim/layers/layers.hpp"
#include "sim/models/model.hpp"

namespace halfscope {

/// Both layers and the names under which they are recorded.
struct NormalisedConvolution {
  std::string convolution_name, norm_name;
  Conv2dParameters convolution;
  BatchNormParameters norm;
};

/// Parameters of a normalised convolution: He initialisation and beta 0.
struct NormalisedConvolutionSpec {
  std::string convolution_name, norm_name;
  std::int64_t size = 3;  ///< the kernel's side
  std::int64_t in = 0, out = 0;
  std::int64_t stride = 1;
  float gamma = 1;  ///< at the start
};

/// Adds NAME.weight (size, size, in, out) to `store`, He initialisation, a function of the model's seed and
/// name.
[[nodiscard]] Parameter& add_filter(ParameterStore& store, const ModelSpec& model, const std::string& name,
                                    const Shape& shape);

/// Adds NAME.gamma, NAME.beta and the running statistics to `store`.
[[nodiscard]] BatchNormParameters add_batch_norm(ParameterStore& store, const ModelSpec& model,
                                                 const std::string& name, std::int64_t channels,
                                                 float gamma = 1);

/// Adds the weight, NORM.gamma, NORM.beta and the running statistics to `store`; the weight is a function of
/// the model's seed and its name.
[[nodiscard]] NormalisedConvolution add_normalised_convolution(ParameterStore& store, const ModelSpec& model,
                                                               const NormalisedConvolutionSpec& spec);

TensorRef convolve(Tape& tape, TensorRef x, const NormalisedConvolution& layers);

}  // namespace halfscope
