// The arithmetic of an element of batch and layer normalisation, for the loops on the CPU and on the device.
// Statistics are those of its channel in the one, and of its row in the other.
#pragma once

#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/core/host_device.hpp>

namespace halfscope::norm_element {

[[nodiscard]] HALFSCOPE_HD float inverse_deviation(float variance, float epsilon) {
  return halfscope::rsqrt(variance + epsilon);
}

[[nodiscard]] HALFSCOPE_HD float normalised(float x, float mean, float inverse_deviation) {
  return (x - mean) * inverse_deviation;
}

[[nodiscard]] HALFSCOPE_HD float scaled(float normalised, float gamma, float beta) {
  return gamma * normalised + beta;
}

/// The gradient of x from that of y, times `scale`: `centred` is the gradient of y less its mean, and
/// `along_normalised` the normalised number times the mean of the gradient times such numbers.
[[nodiscard]] HALFSCOPE_HD float gradient(float centred, float along_normalised, float scale) {
  return scale * (centred - along_normalised);
}

/// A running statistic after it has moved towards that of a batch.
[[nodiscard]] HALFSCOPE_HD float moved(float running, float batch, float factor, float momentum) {
  return running + momentum * (batch * factor - running);
}

}  // namespace halfscope::norm_element
