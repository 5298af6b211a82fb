// The paper's loss-scaling claim on a detector.
#pragma once

#include "experiments/experiment.hpp"

namespace halfscope {

/// A small SSD, whose loss is averaged over every anchor of a batch that is made to look 256 times larger.
[[nodiscard]] Experiment make_detection_loss_scale();
/// What its arms have in common.
[[nodiscard]] Settings detection_settings();

}  // namespace halfscope
