// Names and settings of arms that differ in the weight of the loss.
#include "experiments/ablations/loss_weight_arms.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/ablations/loss_scale_arms.hpp"
#include "experiments/runner/settings.hpp"

namespace halfscope {
namespace {

Arm weighed_arm(const LossWeightArms& arms, const WeighedNetwork& network, const Arm& scale, int part) {
  Settings settings = with(with(network.settings, scale.settings), arms.compensation(network, part));
  return {loss_weight_arm_name(network, scale.name, part),
          fmt::format("{}; {}; loss times {}", network.words, scale.summary, part_words(part)),
          with(std::move(settings), {{"loss_weight", fmt::format("{}", 1.0 / part)}}), network.full_settings};
}

}  // namespace

std::vector<Arm> loss_weight_arms(const LossWeightArms& arms) {
  std::vector<Arm> all;
  for (const WeighedNetwork& network : arms.networks) {
    Arm fp32 = weighed_arm(arms, network, fp32_arm(), 1);
    fp32.name = fp32_arm_name(network);
    all.push_back(std::move(fp32));
    for (const int part : arms.parts) {
      for (const auto& [scale, parts] : arms.scales) {
        if (std::ranges::find(parts, part) != parts.end())
          all.push_back(weighed_arm(arms, network, scale, part));
      }
    }
  }
  return all;
}

std::string loss_weight_arm_name(const WeighedNetwork& network, std::string_view scale, int part) {
  return fmt::format("{}_{}_w{}", network.name, scale, part);
}

std::string fp32_arm_name(const WeighedNetwork& network) {
  return network.name + "_fp32";
}

std::string part_words(int part) {
  return part == 1 ? "1" : fmt::format("1/{}", part);
}

}  // namespace halfscope
