// The honest negatives: networks that FP16 without loss scaling does no harm.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// A classifier, a detector, a language model and a segmentation network whose losses average over no more
/// positions than their batches have: pairs of FP32 and of FP16 at loss scale 1.
[[nodiscard]] Experiment make_negative_controls();

}  // namespace halfscope
