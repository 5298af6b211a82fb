// Pooling over any windows on the device, one thread per number that is written.
#include <halfscope/kernel/detail/launch.cuh>

#include "lib/nn/pool.hpp"
#include "lib/nn/pool_element.hpp"

namespace halfscope::cuda {
namespace {

Pooling pooling_of(const ImageShape& shape, const PoolWindow& window) {
  return {shape, pooled_shape(shape, window), window};
}

/// The largest number of window `i`; writes which of its pixels that is.
[[nodiscard]] HALFSCOPE_HD float largest_in(const Pooling& pooling, const ElementReader& x, std::int64_t i,
                                            std::uint8_t& winner) {
  const PoolPlace of_window = place_of(i, pooling.pooled);
  float largest = 0;
  std::int64_t at = -1;
  pooling.for_pixels(of_window, [&](std::int64_t row, std::int64_t column) {
    const float here = x[index_of({of_window.image, row, column, of_window.channel}, pooling.images)];
    if (at >= 0 && !(here > largest)) return;
    largest = here;
    at = pooling.pixel_in(of_window, row, column);
  });
  winner = static_cast<std::uint8_t>(at);
  return largest;
}

/// The gradient of pixel `i` from the windows that it won.
[[nodiscard]] HALFSCOPE_HD float won_gradient(const Pooling& pooling, const ElementReader& y_gradient,
                                              const std::uint8_t* winner, std::int64_t i) {
  const PoolPlace of_pixel = place_of(i, pooling.images);
  float sum = 0;
  pooling.for_windows(of_pixel, [&](const PoolPlace& of_window) {
    const std::int64_t at = index_of(of_window, pooling.pooled);
    if (winner[at] == pooling.pixel_in(of_window, of_pixel.row, of_pixel.column)) sum += y_gradient[at];
  });
  return sum;
}

/// The mean of window `i`.
[[nodiscard]] HALFSCOPE_HD float mean_in(const Pooling& pooling, const ElementReader& x, AverageOver over,
                                         std::int64_t i) {
  const PoolPlace of_window = place_of(i, pooling.pooled);
  float sum = 0;
  pooling.for_pixels(of_window, [&](std::int64_t row, std::int64_t column) {
    sum += x[index_of({of_window.image, row, column, of_window.channel}, pooling.images)];
  });
  return sum / pooling.divisor(of_window, over);
}

/// The gradient of pixel `i` from the means that it is in.
[[nodiscard]] HALFSCOPE_HD float mean_gradient(const Pooling& pooling, const ElementReader& y_gradient,
                                               AverageOver over, std::int64_t i) {
  float sum = 0;
  pooling.for_windows(place_of(i, pooling.images), [&](const PoolPlace& of_window) {
    sum += y_gradient[index_of(of_window, pooling.pooled)] / pooling.divisor(of_window, over);
  });
  return sum;
}

struct MaxPool {
  Pooling pooling;
  ElementReader x;
  ElementWriter y;
  std::uint8_t* winner;
  HALFSCOPE_HD void operator()(std::int64_t i) const { y.set(i, largest_in(pooling, x, i, winner[i])); }
};

struct MaxPoolGradient {
  Pooling pooling;
  ElementReader y_gradient;
  const std::uint8_t* winner;
  float* x_gradient;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    x_gradient[i] = won_gradient(pooling, y_gradient, winner, i);
  }
};

struct AveragePool {
  Pooling pooling;
  ElementReader x;
  AverageOver over;
  float* y;
  HALFSCOPE_HD void operator()(std::int64_t i) const { y[i] = mean_in(pooling, x, over, i); }
};

struct AveragePoolGradient {
  Pooling pooling;
  ElementReader y_gradient;
  AverageOver over;
  float* x_gradient;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    x_gradient[i] = mean_gradient(pooling, y_gradient, over, i);
  }
};

}  // namespace

void max_pool(const ConstArrayView& x, const ImageShape& shape, const PoolWindow& window, const ArrayView& y,
              std::span<std::uint8_t> winner) {
  for_each(static_cast<std::int64_t>(y.size()),
           MaxPool{pooling_of(shape, window), on_device(x), on_device(y), on_device(winner)}, "max_pool");
}

void max_pool_gradient(const ConstArrayView& y_gradient, const ImageShape& shape, const PoolWindow& window,
                       std::span<const std::uint8_t> winner, std::span<float> x_gradient) {
  for_each(std::ssize(x_gradient),
           MaxPoolGradient{pooling_of(shape, window), on_device(y_gradient), on_device(winner),
                           on_device(x_gradient)},
           "max_pool_gradient");
}

void average_pool(const ConstArrayView& x, const ImageShape& shape, const PoolWindow& window,
                  AverageOver over, std::span<float> y) {
  for_each(std::ssize(y), AveragePool{pooling_of(shape, window), on_device(x), over, on_device(y)},
           "average_pool");
}

void average_pool_gradient(const ConstArrayView& y_gradient, const ImageShape& shape,
                           const PoolWindow& window, AverageOver over, std::span<float> x_gradient) {
  for_each(std::ssize(x_gradient),
           AveragePoolGradient{pooling_of(shape, window), on_device(y_gradient), over, on_device(x_gradient)},
           "average_pool_gradient");
}

}  // namespace halfscope::cuda
