// A small convolutional classifier with batch norm.
#pragma once

#include "sim/models/model.hpp"

namespace halfscope {

/// conv 3x3 to 16, batch norm, ReLU, max pool 2; the same to 32; linear to 128, ReLU; linear to the classes.
/// He initialisation, the last layer's halved. Throws InvalidArgument for images whose sides are no multiples
/// of 4.
[[nodiscard]] Model make_cnn_bn(const ModelSpec& spec);

}  // namespace halfscope
