// The paper's loss-scaling claim on a detector.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// Settings that its arms share.
[[nodiscard]] Settings detection_settings();
/// Changes at full size: 64 images of 61,440 anchors are the 3.9 million positions that a weight of 1/256
/// stands for in the loss over 15,360.
[[nodiscard]] Settings detection_full_settings();

}  // namespace halfscope
