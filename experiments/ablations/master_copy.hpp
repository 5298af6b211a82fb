// The paper's first claim: FP16 weights need an FP32 master copy.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// Adam at a small learning rate (1e-5): most updates are below half an ulp of their weight.
[[nodiscard]] Experiment make_master_copy();
/// The same ablation with SGD and momentum at 1e-4.
[[nodiscard]] Experiment make_master_copy_sgd();

}  // namespace halfscope
