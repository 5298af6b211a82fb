// The layers of the convolutional classifier.
#pragma once

#include <array>

#include "sim/models/model.hpp"
#include "sim/models/parts/normalised_convolution.hpp"

namespace halfscope {

struct CnnBn {
  std::array<NormalisedConvolution, 2> convolutions;
  LinearParameters hidden, classes;
};

/// Features that the last layer sees.
inline constexpr std::int64_t cnn_bn_features = 128;

/// Throws as `make_cnn_bn` does.
[[nodiscard]] CnnBn add_cnn_bn(ParameterStore& store, const ModelSpec& spec);

/// The features (batch, 128) of images (batch, height, width, channels).
TensorRef features_of(Tape& tape, const CnnBn& model, TensorRef images);

}  // namespace halfscope
