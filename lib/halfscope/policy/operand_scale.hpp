// Scales of whole operands: of their own magnitudes, or of those of the steps before.
#pragma once

#include <vector>

#include <halfscope/policy/operands.hpp>

namespace halfscope {

/// TransformerEngine's scale of the operand's own largest magnitude, for a format that ends at `largest`:
/// largest / amax, the largest float where that is infinite, and 1 where amax is 0, infinite or NaN.
[[nodiscard]] float current_scale(float amax, float largest);

/// TransformerEngine's delayed scale: made after a step from the magnitudes of this step and those before,
/// and used in the next one.
struct DelayedScale {
  float scale = 1;
  std::vector<float> history{};  ///< largest magnitudes by step, the latest one first; 0: none yet

  /// Takes in a step whose largest magnitude is `amax`. A step of zeros alone changes nothing. The scale
  /// becomes (largest / 2^margin) / the chosen magnitude, the largest float where that is infinite; it stays
  /// where the magnitude is not finite. NaNs in the history do not count.
  void update(float amax, float largest, const DelayedScaling& options);
};

}  // namespace halfscope
