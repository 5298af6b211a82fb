// Numbers that analyses draw.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <halfscope/arithmetic/normal.hpp>

namespace halfscope {

/// Independent standard normal numbers; the same for the same `site`.
[[nodiscard]] inline std::vector<float> normal_numbers(std::size_t count, std::uint32_t site) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = normal_pair({.site = site}, i / 2)[i % 2];
  return numbers;
}

/// The standard normal distribution.
[[nodiscard]] inline double normal_share_below(double x) {
  return std::erfc(-x / std::sqrt(2.0)) / 2;
}

}  // namespace halfscope
