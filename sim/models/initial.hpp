// Initial weights: pure functions of the seed and the parameter's name.
#pragma once

#include <cstdint>
#include <string_view>

#include <halfscope/device/array.hpp>

namespace halfscope {

/// Independent normal numbers of the given standard deviation and mean 0.
[[nodiscard]] Array normal_weights(Shape shape, float deviation, std::uint64_t seed, std::string_view name);

/// Independent uniform numbers on [-bound, bound).
[[nodiscard]] Array uniform_weights(Shape shape, float bound, std::uint64_t seed, std::string_view name);

/// sqrt(2 / fan_in): keeps the variance through a ReLU (He et al., ICCV 2015, eq. 10).
[[nodiscard]] float he_deviation(std::int64_t fan_in);

[[nodiscard]] Array constant_weights(Shape shape, float value);

}  // namespace halfscope
