// The sum of an array's squares, in double and in a fixed order.
#pragma once

#include <cstddef>
#include <span>

#include <halfscope/device/device.hpp>

namespace halfscope {

inline constexpr std::size_t sum_of_squares_lanes = 8;

/// Element i is added to sum i % 8; the eight are added in ascending order.
[[nodiscard]] double sum_of_squares(std::span<const float> values);

/// `sum_of_squares` of an array on the device, which it calls where that is the active one.
namespace cuda {
[[nodiscard]] double sum_of_squares(std::span<const float> values);
/// Without waiting, of all arrays at a time: sums (arrays, lanes) of the values times `factor`, each product
/// rounded.
void queue_sums_of_squares(std::span<const std::span<const float>> arrays, float factor,
                           std::span<double> sums);
}  // namespace cuda

}  // namespace halfscope
