// Max and average pooling over any windows, of images with the channel last.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lib/nn/elementwise.hpp"
#include "lib/nn/pool_window.hpp"

namespace halfscope {

/// `pooled_shape`. Throws InvalidArgument, which begins with `where`, for windows of no pixel or of more than
/// 15 by 15, for a stride below 1, for a padding that is not below the size and where no window fits.
[[nodiscard]] ImageShape checked_pooled_shape(std::string_view where, const ImageShape& shape,
                                              const PoolWindow& window);

/// y, of `pooled_shape`, = the largest of each window of x; winner holds which pixel it was, counted row by
/// row from the window's corner (the first of equals). Each of these throws InvalidArgument where the sizes
/// do not fit, and as `checked_pooled_shape` does.
void max_pool(const ConstArrayView& x, const ImageShape& shape, const PoolWindow& window, const ArrayView& y,
              std::span<std::uint8_t> winner);
/// x_gradient (the shape of x) = the sum of y_gradient over the windows that a number won, row by row from
/// zero in FP32.
void max_pool_gradient(const ConstArrayView& y_gradient, const ImageShape& shape, const PoolWindow& window,
                       std::span<const std::uint8_t> winner, std::span<float> x_gradient);

/// Divisor of the sum over a window: all its pixels, or those inside the image.
enum class AverageOver : std::uint8_t { window, image };

/// y, of `pooled_shape`, = the mean of each window of x, whose pixels outside the image are zeros: a sum row
/// by row from zero in FP32, then one division.
void average_pool(const ConstArrayView& x, const ImageShape& shape, const PoolWindow& window,
                  AverageOver over, std::span<float> y);
/// x_gradient (the shape of x) = the sum over a pixel's windows, row by row from zero in FP32, of y_gradient
/// divided as above.
void average_pool_gradient(const ConstArrayView& y_gradient, const ImageShape& shape,
                           const PoolWindow& window, AverageOver over, std::span<float> x_gradient);

/// The same operations on the device, which the functions above call where that is the active one.
namespace cuda {
void max_pool(const ConstArrayView& x, const ImageShape& shape, const PoolWindow& window, const ArrayView& y,
              std::span<std::uint8_t> winner);
void max_pool_gradient(const ConstArrayView& y_gradient, const ImageShape& shape, const PoolWindow& window,
                       std::span<const std::uint8_t> winner, std::span<float> x_gradient);
void average_pool(const ConstArrayView& x, const ImageShape& shape, const PoolWindow& window,
                  AverageOver over, std::span<float> y);
void average_pool_gradient(const ConstArrayView& y_gradient, const ImageShape& shape,
                           const PoolWindow& window, AverageOver over, std::span<float> x_gradient);
}  // namespace cuda

struct Pooling;
/// Row `row` of the images or of what pooling makes of them, counted over all images, in one thread.
template <Isa isa>
struct PoolLoops {
  static void max(const Pooling& pooling, std::int64_t row, const float* x, float* y, std::uint8_t* winner);
  static void max_gradient(const Pooling& pooling, std::int64_t row, const float* y_gradient,
                           const std::uint8_t* winner, float* x_gradient);
  static void average(const Pooling& pooling, std::int64_t row, AverageOver over, const float* x, float* y);
  static void average_gradient(const Pooling& pooling, std::int64_t row, AverageOver over,
                               const float* y_gradient, float* x_gradient);
};

}  // namespace halfscope
