// Sums of squares of arrays, in double and in a fixed order.
#pragma once

#include <cstddef>
#include <span>

#include <halfscope/device/device.hpp>

namespace halfscope {

inline constexpr std::size_t sum_of_squares_lanes = 8;

/// Into sums (arrays, lanes), of the arrays' values times `factor`, each product rounded: element i of an
/// array is in its sum i % 8, in ascending order. All lie in memory of the active device, which is not waited
/// for. Throws InvalidArgument where `sums` has another size.
void sums_of_squares(std::span<const std::span<const float>> arrays, float factor, std::span<double> sums);

/// The same sum of arrays on the device, which the above calls where that is the active one.
namespace cuda {
void sums_of_squares(std::span<const std::span<const float>> arrays, float factor, std::span<double> sums);
}  // namespace cuda

}  // namespace halfscope
