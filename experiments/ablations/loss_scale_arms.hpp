// The arms of a loss-scaling ablation: FP16 with an FP32 master copy, at one loss scale each.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// The baseline, called fp32.
[[nodiscard]] Arm fp32_arm();
/// A constant scale that never skips a step, called fp16_s<scale>, such as fp16_s128.
[[nodiscard]] Arm static_scale_arm(double scale);
/// Starts at 2^24, halves on overflow and doubles after 200 good steps; called fp16_dynamic.
[[nodiscard]] Arm dynamic_scale_arm();

}  // namespace halfscope
