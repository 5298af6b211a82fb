// A factor of a kernel that the host need not know.
#pragma once

#include <span>

#include <halfscope/core/host_device.hpp>

namespace halfscope {

/// The one number of `numerator`, which is where the active device has its arrays, over `divisor`.
struct DeviceRatio {
  std::span<const float> numerator;
  float divisor = 1;

  /// Where the array is.
  [[nodiscard]] HALFSCOPE_HD float value() const { return *numerator.data() / divisor; }
};

}  // namespace halfscope
