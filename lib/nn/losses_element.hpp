// The arithmetic of element-wise losses, for the loops on the CPU and on the device.
#pragma once

#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/core/host_device.hpp>
#include <halfscope/format/bits.hpp>

namespace halfscope {

/// -|x|.
HALFSCOPE_HD float negative_magnitude(float x) {
  return from_bits(to_bits(x) | sign_bit);
}

/// max(x, 0) - x t, with which the logarithm makes the binary cross entropy.
HALFSCOPE_HD float sigmoid_loss_without_log(float x, float target) {
  return (x < 0.0f ? 0.0f : x) - x * target;
}

/// log x, or -100 where it would be less. A NaN stays one.
HALFSCOPE_HD float bounded_log(float x) {
  const float exact = elementary<Elementary::log>(x);
  return exact < -100.0f ? -100.0f : exact;
}

/// The binary cross entropy of a probability.
HALFSCOPE_HD float probability_loss(float p, float target) {
  return -(target * bounded_log(p) + (1.0f - target) * bounded_log(1.0f - p));
}

/// The derivative of `probability_loss`, of a p next to 0 or 1 with 1e-12 in the denominator.
HALFSCOPE_HD float probability_slope(float p, float target) {
  const float variance = p * (1.0f - p);
  return (p - target) / (variance > 1e-12f ? variance : 1e-12f);
}

HALFSCOPE_HD float smooth_l1_loss(float difference) {
  const float size = from_bits(magnitude_bits(difference));
  return size < 1.0f ? 0.5f * size * size : size - 0.5f;
}

/// The derivative of `smooth_l1_loss`. A NaN stays one.
HALFSCOPE_HD float smooth_l1_slope(float difference) {
  return difference > 1.0f ? 1.0f : difference < -1.0f ? -1.0f : difference;
}

}  // namespace halfscope
