// Rules for UE4M3 scales in two steps, for many blocks at once.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <halfscope/format/block_format.hpp>

namespace halfscope::detail {

/// A block's scale is the number nearest to the quotient of its largest magnitude, its elements' factor
/// follows from that number.
struct Ue4m3Steps {
  /// to[i] is the quotient of amax[i], from 0 to 448, or NaN.
  void (*quotients)(std::span<const float> amax, const TensorFactors& tensor, std::span<float> to);
  float (*factor)(float scale, const TensorFactors& tensor);
};

[[nodiscard]] Ue4m3Steps steps_nvfp4_te();
[[nodiscard]] Ue4m3Steps steps_te_head_room();
[[nodiscard]] Ue4m3Steps steps_torchao();
[[nodiscard]] Ue4m3Steps steps_modelopt();

/// The steps of a rule that makes one scale.
struct RuleSteps {
  BlockScales (*scales)(const BlockMaximum& block);
  Ue4m3Steps (*steps)();
};
/// One line per rule for UE4M3 scales that does not choose one of two.
inline constexpr std::array rules_in_steps{
    RuleSteps{scales_nvfp4_te, steps_nvfp4_te},
    RuleSteps{scales_te_head_room, steps_te_head_room},
    RuleSteps{scales_torchao, steps_torchao},
    RuleSteps{scales_modelopt, steps_modelopt},
};

}  // namespace halfscope::detail
