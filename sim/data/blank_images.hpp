// Images of zeros, for questions about sizes: no data set has ImageNet's.
#pragma once

#include <memory>

#include "sim/data/dataset.hpp"

namespace halfscope {

/// One example per split, of `shape` (height, width, channel) and class 0; a batch may name it more than
/// once. Throws InvalidArgument unless all extents and `classes` are positive.
[[nodiscard]] std::unique_ptr<Dataset> make_blank_images(const Shape& shape, std::int64_t classes);

}  // namespace halfscope
