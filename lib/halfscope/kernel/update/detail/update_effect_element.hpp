// The arithmetic of one weight's update, for the loops on the CPU and on the device.
#pragma once

#include <cmath>

#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/update/update_effect.hpp>

namespace halfscope {

/// a + b rounded to odd: an inexact sum ends in a 1 bit, so that rounding it again, to at most 21 mantissa
/// bits, gives what rounding the exact sum would. The error of the nearest sum is Knuth's TwoSum; where there
/// is one, it says on which side the odd neighbour is.
HALFSCOPE_HD float add_to_odd(float a, float b) {
  const float sum = a + b;
  const float b_part = sum - a;
  const float error = (a - (sum - b_part)) + (b - b_part);
  const std::uint32_t bits = to_bits(sum), error_bits = to_bits(error);
  const bool inexact = (error_bits & ~sign_bit) - 1u < infinity_bits - 1u;  // not zero, infinite or NaN
  const std::uint32_t step = ((bits ^ error_bits) & sign_bit) == 0 ? 1u : ~0u;
  return from_bits(inexact && (bits & 1u) == 0 ? bits + step : bits);
}

/// Sum that is rounded again to store the weight, of which `mantissa_bits` are kept.
HALFSCOPE_HD float updated_weight(float stored, float update, int mantissa_bits) {
  return mantissa_bits > 21 ? stored + update : add_to_odd(stored, update);
}

/// Outcome of one update: see UpdateLanes. No branch depends on the numbers, so that loops over it vectorise.
struct UpdateOutcome {
  std::uint32_t nonzero, lost;
  double applied, intended;
};

HALFSCOPE_HD UpdateOutcome update_outcome(float stored, float updated, float update) {
  const double applied = std::fabs(double{updated} - double{stored});
  const bool nonzero = update != 0;  // a NaN too
  const bool lost = nonzero & (updated == stored);
  const bool counts = nonzero & (applied <= 0x1.fffffffffffffp1023);  // finite; false for NaN
  return {nonzero ? 1u : 0u, lost ? 1u : 0u, counts ? applied : 0.0,
          counts ? std::fabs(double{update}) : 0.0};
}

}  // namespace halfscope
