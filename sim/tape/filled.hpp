// Arrays of one number.
#pragma once

#include <algorithm>
#include <utility>

#include <halfscope/device/array.hpp>

namespace halfscope {

/// On the active device.
[[nodiscard]] inline Array filled(Shape shape, float value) {
  Array array(std::move(shape), Device::cpu);
  std::ranges::fill(array.values(), value);
  return array.to(active_device());
}

}  // namespace halfscope
