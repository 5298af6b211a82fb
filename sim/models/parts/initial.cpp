// Weights from counter-based random bits.
#include "sim/models/parts/initial.hpp"

#include <algorithm>
#include <cmath>

#include <halfscope/arithmetic/normal.hpp>

namespace halfscope {
Array normal_weights(Shape shape, float deviation, std::uint64_t seed, std::string_view name) {
  Array array(std::move(shape));
  const RandomStream stream{seed, 0, site_hash(name.data(), name.size())};
  for (std::size_t i = 0; i < array.size(); ++i) array[i] = deviation * normal_pair(stream, i)[0];
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

Array layer_weights(const ModelSpec& model, Shape shape, float deviation, std::string_view name) {
  if (model.initial == InitialWeights::unset) return Array(std::move(shape));
  return normal_weights(std::move(shape), deviation, model.seed, name);
}

Array constant_weights(Shape shape, float value) {
  Array array(std::move(shape));
  std::fill_n(array.data(), array.size(), value);
  return array;
}

}  // namespace halfscope
