// The paper's third technique: large reductions need FP32 sums.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// Batch norm statistics added up in FP32, in FP16 one after the other, and in FP16 pairwise.
[[nodiscard]] Experiment make_batchnorm_reduction();

}  // namespace halfscope
