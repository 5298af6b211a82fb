// Scales of whole operands: of their own magnitudes, or of those of the steps before, which are state of a
// run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <halfscope/device/array.hpp>
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

/// Largest magnitude that a step has seen of an operand with a delayed scale.
struct OperandMaximum {
  float amax = 0;     ///< NaNs left out
  float largest = 0;  ///< largest number of its format
  DelayedScaling options{};
};
/// By "LAYER.PRODUCT.SIDE".
using OperandMaxima = std::map<std::string, OperandMaximum>;

/// The delayed scales of a run.
class OperandScales {
 public:
  /// 1 of an operand that no step has seen.
  [[nodiscard]] float scale(const std::string& operand) const;
  void update(const OperandMaxima& step);

  /// For a checkpoint: of each operand (1 + history) floats, its scale first.
  [[nodiscard]] std::map<std::string, Array> state() const;
  /// Throws InvalidArgument for an array that is none of these.
  void restore(const std::string& operand, const Array& state);

 private:
  std::map<std::string, DelayedScale> scales_{};
};

}  // namespace halfscope
