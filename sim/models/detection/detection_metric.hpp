// The metric of a detector: AP50 over the test set.
#pragma once

#include "sim/models/model.hpp"

namespace halfscope {

/// AP50 in 0..1 (see average_precision_50). The model's predictions are its logits (rows, classes with the
/// background first) and box offsets (rows, 4), or (rows, 4 * classes without the background), which then are
/// each class's own. Their rows are the `anchors` of each image, or the outcome's `starts`. A detection is a
/// row's box with one class of probability 0.01 or more; per class and image, those that overlap a better one
/// by more than 0.45 are dropped.
[[nodiscard]] std::unique_ptr<Metric> make_detection_metric(std::vector<Box> anchors);

}  // namespace halfscope
