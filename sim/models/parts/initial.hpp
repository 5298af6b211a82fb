// Initial weights: pure functions of the seed and the parameter's name.
#pragma once

#include <cstdint>
#include <string_view>

#include <halfscope/device/array.hpp>

#include "sim/models/model.hpp"

namespace halfscope {

/// Independent normal numbers of the given standard deviation and mean 0.
[[nodiscard]] Array normal_weights(Shape shape, float deviation, std::uint64_t seed, std::string_view name);

/// Independent uniform numbers on [-bound, bound).
[[nodiscard]] Array uniform_weights(Shape shape, float bound, std::uint64_t seed, std::string_view name);

/// sqrt(2 / fan_in): keeps the variance through a ReLU (He et al., ICCV 2015, eq. 10).
[[nodiscard]] float he_deviation(std::int64_t fan_in);

/// The weights of a convolution or a matrix with the model's seed: `normal_weights`, or where the model's are
/// not drawn an array whose memory nobody has touched.
[[nodiscard]] Array layer_weights(const ModelSpec& model, Shape shape, float deviation,
                                  std::string_view name);

[[nodiscard]] Array constant_weights(Shape shape, float value);

}  // namespace halfscope
