// Convolutions with a bias as the models without batch norm use them.
#pragma once

#include <optional>

#include "sim/layers/layers.hpp"
#include "sim/models/model.hpp"

namespace halfscope {

/// A convolution and the name under which it is recorded.
struct Convolution {
  std::string name;
  Conv2dParameters parameters;
};

/// Parameters of a convolution: He initialisation times `gain`.
struct ConvolutionSpec {
  std::string name;
  std::int64_t size = 3;  ///< the kernel's side
  std::int64_t in = 0, out = 0;
  float gain = 1;
  Stride stride{};
  std::int64_t groups = 1;                       ///< groups of channels; their number divides `in` and `out`
  std::optional<Border> padding = std::nullopt;  ///< none: half the kernel
  float bias = 0;                                ///< at the start
};

/// Adds NAME.weight and NAME.bias to `store`; the weight is a function of the model's seed and its name.
[[nodiscard]] Convolution add_convolution(ParameterStore& store, const ModelSpec& model,
                                          const ConvolutionSpec& spec);

TensorRef convolve(Tape& tape, TensorRef x, const Convolution& convolution);
/// The convolution and a ReLU, recorded as NAME.relu.
TensorRef convolve_relu(Tape& tape, TensorRef x, const Convolution& convolution);

}  // namespace halfscope
