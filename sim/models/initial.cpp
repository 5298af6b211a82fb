// Normal numbers from counter-based random bits.
#include "sim/models/initial.hpp"

#include <algorithm>
#include <cmath>

#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/core/random.hpp>

namespace halfscope {
namespace {

/// Marsaglia's polar method; attempts count up the stream's step, so element i depends on nothing but (seed,
/// name, i).
float normal(RandomStream stream, std::uint64_t index) {
  for (;; ++stream.step) {
    const RandomBlock bits = stream.block(index);
    const float u = static_cast<float>(static_cast<std::int32_t>(bits[0]) >> 8) * 0x1p-23f;
    const float v = static_cast<float>(static_cast<std::int32_t>(bits[1]) >> 8) * 0x1p-23f;
    const float radius = u * u + v * v;
    if (radius > 0.0f && radius < 1.0f) return u * std::sqrt(-2.0f * log(radius) / radius);
  }
}

}  // namespace

Array normal_weights(Shape shape, float deviation, std::uint64_t seed, std::string_view name) {
  Array array(std::move(shape));
  const RandomStream stream{seed, 0, site_hash(name.data(), name.size())};
  for (std::size_t i = 0; i < array.size(); ++i) array[i] = deviation * normal(stream, i);
  return array;
}

Array uniform_weights(Shape shape, float bound, std::uint64_t seed, std::string_view name) {
  Array array(std::move(shape));
  const RandomStream stream{seed, 0, site_hash(name.data(), name.size())};
  for (std::size_t i = 0; i < array.size(); ++i) array[i] = bound * (2.0f * stream.uniform(i) - 1.0f);
  return array;
}

float he_deviation(std::int64_t fan_in) {
  return std::sqrt(2.0f / static_cast<float>(fan_in));
}

Array constant_weights(Shape shape, float value) {
  Array array(std::move(shape));
  std::fill_n(array.data(), array.size(), value);
  return array;
}

}  // namespace halfscope
