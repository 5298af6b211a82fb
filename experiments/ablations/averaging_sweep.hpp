// How small a gradient must be for FP16 to harm: the language model over ever more positions.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// A GRU language model without loss scaling, its loss averaged over 1, 16, 64 and 256 times its batch's
/// positions, each beside FP32.
[[nodiscard]] Experiment make_averaging_sweep();

}  // namespace halfscope
