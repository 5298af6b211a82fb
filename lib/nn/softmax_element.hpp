// The part of a row's smoothed loss, for the loops on the CPU and on the device.
#pragma once

#include <cstdint>

#include <halfscope/core/host_device.hpp>

namespace halfscope {

/// Term that label smoothing adds to the cross entropy of a row x of logits.
[[nodiscard]] HALFSCOPE_HD float smoothed_part(const float* x, std::int64_t classes, std::int32_t label,
                                               float smoothing) {
  float sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += x[c];
  return smoothing * (x[label] - sum / static_cast<float>(classes));
}

}  // namespace halfscope
