// Average precision: how well a ranked list of detections finds the boxes that are there.
#pragma once

#include <span>

#include "sim/models/detection/suppression.hpp"

namespace halfscope {

/// The detections of all classes and images in one ranking (micro average), by descending score, the earlier
/// of equals first. Each takes the box of its image and class that it overlaps most among those not yet
/// taken, and is right if that is by at least 0.5. The result is the area under the best precision at each
/// recall or beyond, in 0..1; 0 where there are no boxes. `example` of every box says which image it is in.
[[nodiscard]] double average_precision_50(std::vector<Detection> detections, std::span<const Box> truth);

}  // namespace halfscope
