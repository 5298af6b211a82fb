// Arrays of given numbers.
#pragma once

#include <algorithm>
#include <vector>

#include <halfscope/device/array.hpp>

namespace halfscope {

/// As many numbers as `shape` has elements, in order.
[[nodiscard]] inline Array array_of(Shape shape, const std::vector<float>& numbers) {
  Array array(std::move(shape));
  std::ranges::copy(numbers, array.data());
  return array;
}

}  // namespace halfscope
