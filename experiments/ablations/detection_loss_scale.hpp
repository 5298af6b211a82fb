// The paper's loss-scaling claim on a detector.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// A small SSD, whose loss is averaged over every anchor of a batch that is made to look 256 times larger.
[[nodiscard]] Experiment make_detection_loss_scale();
/// What its arms have in common.
[[nodiscard]] Settings detection_settings();
/// What differs on a GPU: 64 images of 61,440 anchors are the 3.9 million positions that a weight of 1/256
/// stands for in the loss over 15,360.
[[nodiscard]] Settings detection_gpu_settings();

}  // namespace halfscope
