// 2x2 max pooling of images with the channel last.
#pragma once

#include <cstdint>
#include <span>

#include "lib/nn/elementwise.hpp"

namespace halfscope {

/// y (batch, height / 2, width / 2, channels) = the largest of each 2x2 window of x; winner holds which of
/// the four it was (0..3, row by row; the first of equals). Throws InvalidArgument where height or width is
/// odd.
void max_pool_2x2(const ConstArrayView& x, const ImageShape& shape, const ArrayView& y,
                  std::span<std::uint8_t> winner);

/// x_gradient (the shape of x) = y_gradient at each window's winner, 0 elsewhere.
void max_pool_2x2_gradient(const ConstArrayView& y_gradient, const ImageShape& shape,
                           std::span<const std::uint8_t> winner, const ArrayView& x_gradient);

/// The same operations on the device, which the functions above call where that is the active one.
namespace cuda {
void max_pool_2x2(const ConstArrayView& x, const ImageShape& shape, const ArrayView& y,
                  std::span<std::uint8_t> winner);
void max_pool_2x2_gradient(const ConstArrayView& y_gradient, const ImageShape& shape,
                           std::span<const std::uint8_t> winner, const ArrayView& x_gradient);
}  // namespace cuda

/// One row of windows: `top` and `bottom` are two rows of x, of `windows` windows of `channels` each.
template <Isa isa>
struct MaxPoolLoops {
  static void forward(const float* top, const float* bottom, std::int64_t windows, std::int64_t channels,
                      float* y, std::uint8_t* winner);
  static void backward(const float* y_gradient, const std::uint8_t* winner, std::int64_t windows,
                       std::int64_t channels, float* top, float* bottom);
};

}  // namespace halfscope
