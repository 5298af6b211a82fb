// Checks of what a detector learns from.
#pragma once

#include <string_view>

#include "sim/data/dataset.hpp"

namespace halfscope {

/// Throws InvalidArgument, which names the model, for a batch with labels instead of boxes and for a box of
/// no image or of no class in [0, classes).
void check_boxes(std::string_view model, const Batch& batch, std::int64_t classes);

/// Throws InvalidArgument, which names the model, for what are no images and for images whose sides are not
/// multiples of `multiple` from `least` on, in pixels.
void check_detector_images(std::string_view model, const Shape& shape, std::int64_t multiple,
                           std::int64_t least);

}  // namespace halfscope
