// The paper's loss-scaling claim on a per-pixel loss.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// A small U-Net, whose loss is averaged over every pixel of a batch that is made to look 256 times larger.
[[nodiscard]] Experiment make_segmentation_loss_scale();

}  // namespace halfscope
