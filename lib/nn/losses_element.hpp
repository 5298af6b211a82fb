// The arithmetic of element-wise losses, for the loops on the CPU and on the device.
#pragma once

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

HALFSCOPE_HD float smooth_l1_loss(float difference) {
  const float size = from_bits(magnitude_bits(difference));
  return size < 1.0f ? 0.5f * size * size : size - 0.5f;
}

/// The derivative of `smooth_l1_loss`. A NaN stays one.
HALFSCOPE_HD float smooth_l1_slope(float difference) {
  return difference > 1.0f ? 1.0f : difference < -1.0f ? -1.0f : difference;
}

}  // namespace halfscope
