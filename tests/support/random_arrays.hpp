// Arrays of numbers that tests compute with.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <halfscope/arithmetic/normal.hpp>
#include <halfscope/core/random.hpp>
#include <halfscope/device/array.hpp>

namespace halfscope {

/// Uniform on [low, high); the same numbers for the same seed.
[[nodiscard]] inline std::vector<float> uniform_floats(std::size_t count, float low, float high,
                                                       std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = low + (high - low) * RandomStream{seed}.uniform(i);
  return values;
}

/// Standard normal; the same numbers for the same seed.
[[nodiscard]] inline std::vector<float> normal_floats(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = normal_pair({.seed = seed}, i / 2)[i % 2];
  return values;
}

/// Uniform numbers, on the active device.
[[nodiscard]] inline Array uniform_array(Shape shape, float low, float high, std::uint64_t seed) {
  Array array(std::move(shape), Device::cpu);
  const std::vector<float> values = uniform_floats(array.size(), low, high, seed);
  std::copy(values.begin(), values.end(), array.data());
  return array.to(active_device());
}

}  // namespace halfscope
