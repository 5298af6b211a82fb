// Scenes with a class for each pixel: the data set of a segmentation.
#pragma once

#include <memory>

#include "sim/data/dataset.hpp"

namespace halfscope {

/// Images (batch, image_size, image_size, 1) and labels (batch, image_size, image_size): 0 is the background,
/// else 1 + the item's class; 3000 train and 200 test scenes. Throws InvalidArgument as `Scenes` does.
[[nodiscard]] std::unique_ptr<Dataset> open_segmentation_scenes(const DatasetSpec& spec);

}  // namespace halfscope
