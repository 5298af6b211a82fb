// Settings of the arms of a loss-scaling ablation.
#include "experiments/ablations/loss_scale_arms.hpp"

#include <fmt/format.h>

namespace halfscope {

Arm fp32_arm() {
  return {"fp32", "the baseline: everything in FP32", {{"policy", "fp32"}, {"loss_scale", "none"}}};
}

Arm static_scale_arm(double scale) {
  const std::string text = fmt::format("{}", scale);
  return {"fp16_s" + text,
          scale == 1 ? "FP16 tensors, FP32 master weights, no loss scaling"
                     : "FP16 tensors, FP32 master weights, loss scale " + text,
          {{"policy", "fp16_mixed"}, {"loss_scale", text}}};
}

Arm dynamic_scale_arm() {
  return {"fp16_dynamic",
          "FP16 tensors, FP32 master weights, dynamic loss scale from 2^24",
          {{"policy", "fp16_mixed"},
           {"loss_scale", "dynamic"},
           {"initial_scale", "16777216"},
           {"growth_interval", "200"}}};
}

}  // namespace halfscope
