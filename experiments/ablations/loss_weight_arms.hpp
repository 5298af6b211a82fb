// Arms of an ablation over the weight of the loss: each network in FP32, and at each loss scale and weight.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experiments/runner/experiment.hpp"

namespace halfscope {

struct WeighedNetwork {
  std::string name;   ///< that the names of its arms begin with
  std::string words;  ///< in sentences
  Settings settings;
  Settings full_settings{};  ///< what differs at full size
};

/// A loss scale, and the weights of the loss at which it is tried: 1 / part for each of `parts`.
struct ScaleAtParts {
  Arm scale;
  std::vector<int> parts;
};

/// Parts are powers of two, so that in FP32 each weight trains the same network bit for bit where
/// `compensation` undoes it: FP32 has one arm. Arms are in the order of `parts`.
struct LossWeightArms {
  std::span<const WeighedNetwork> networks;
  std::span<const int> parts;
  std::vector<ScaleAtParts> scales;
  std::function<Settings(const WeighedNetwork& network, int part)> compensation;
};
[[nodiscard]] std::vector<Arm> loss_weight_arms(const LossWeightArms& arms);

/// "resnet50_fp16_s128_w4096", of an arm of `scale` called fp16_s128.
[[nodiscard]] std::string loss_weight_arm_name(const WeighedNetwork& network, std::string_view scale,
                                               int part);
/// "resnet50_fp32".
[[nodiscard]] std::string fp32_arm_name(const WeighedNetwork& network);

/// "1", "1/4096".
[[nodiscard]] std::string part_words(int part);

}  // namespace halfscope
