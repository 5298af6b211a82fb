// Non-maximum suppression: of detections that overlap the best one stays.
#pragma once

#include <span>

#include "sim/models/detection/box.hpp"

namespace halfscope {

/// A box that the detector proposes.
struct Detection {
  Box box;          ///< `label` is the class without the background, from 0
  float score = 0;  ///< its probability
};

/// The detections of one class in one image that overlap no better one that stays by more than
/// `most_overlap`, best first; of equal scores the earlier is the better.
[[nodiscard]] std::vector<Detection> suppress(std::vector<Detection> detections, float most_overlap);

}  // namespace halfscope
