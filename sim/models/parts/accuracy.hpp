// Accuracy: the share of predictions whose largest logit is the label's.
#pragma once

#include "sim/models/model.hpp"

namespace halfscope {

/// Percent. The model's one prediction is its logits (predictions, classes), in the order of the batch's
/// labels; of equal logits the first counts.
[[nodiscard]] std::unique_ptr<Metric> make_accuracy();

}  // namespace halfscope
