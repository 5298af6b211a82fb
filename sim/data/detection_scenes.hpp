// Scenes with the boxes of their items: the data set of a detector.
#pragma once

#include <memory>

#include "sim/data/dataset.hpp"

namespace halfscope {

/// Images (batch, image_size, image_size, 1) and boxes labelled with their item's class, 0 to 9; 3000 train
/// and 200 test scenes. Throws InvalidArgument as `Scenes` does.
[[nodiscard]] std::unique_ptr<Dataset> open_detection_scenes(const DatasetSpec& spec);

}  // namespace halfscope
