// The loss-scaling claim on a segmentation.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// The settings that every experiment on the U-Net starts from; its loss averages over a batch's own pixels.
[[nodiscard]] Settings segmentation_settings();

}  // namespace halfscope
