// The metric of a detector: AP50 over the test set.
#pragma once

#include "sim/models/model.hpp"

namespace halfscope {

/// AP50 in 0..1 (see average_precision_50). The model's predictions are its logits (batch * anchors, classes
/// with the background first) and box offsets (batch * anchors, 4). A detection is an anchor's box with one
/// class of probability 0.01 or more; per class and image, those that overlap a better one by more than 0.45
/// are dropped.
[[nodiscard]] std::unique_ptr<Metric> make_detection_metric(std::vector<Box> anchors);

}  // namespace halfscope
