// 2x2 max pooling on the device, one thread per window and channel.
#include <halfscope/kernel/detail/launch.cuh>

#include "lib/nn/max_pool.hpp"
#include "lib/nn/max_pool_element.hpp"

namespace halfscope::cuda {
namespace {

/// Where the four corners of window `i` (batch, height / 2, width / 2, channels) are in the images.
struct Window {
  std::int64_t corner[4];

  HALFSCOPE_HD Window(const ImageShape& shape, std::int64_t i) {
    const std::int64_t channel = i % shape.channels, window = i / shape.channels;
    const std::int64_t column = window % (shape.width / 2), row = window / (shape.width / 2);
    corner[0] = (2 * row * shape.width + 2 * column) * shape.channels + channel;
    corner[1] = corner[0] + shape.channels;
    corner[2] = corner[0] + shape.width * shape.channels;
    corner[3] = corner[2] + shape.channels;
  }
};

struct Forward {
  ElementReader x;
  ImageShape shape;
  ElementWriter y;
  std::uint8_t* winner;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const Window window(shape, i);
    const auto largest = window_maximum<std::int32_t>(x[window.corner[0]], x[window.corner[1]],
                                                      x[window.corner[2]], x[window.corner[3]]);
    y.set(i, largest.value);
    winner[i] = static_cast<std::uint8_t>(largest.corner);
  }
};

struct Backward {
  ElementReader y_gradient;
  ImageShape shape;
  const std::uint8_t* winner;
  ElementWriter x_gradient;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const Window window(shape, i);
    const float gradient = y_gradient[i];
    for (int k = 0; k < 4; ++k) x_gradient.set(window.corner[k], corner_gradient(gradient, winner[i], k));
  }
};

}  // namespace

void max_pool_2x2(const ConstArrayView& x, const ImageShape& shape, const ArrayView& y,
                  std::span<std::uint8_t> winner) {
  for_each(static_cast<std::int64_t>(y.size()), Forward{on_device(x), shape, on_device(y), on_device(winner)},
           "max_pool_2x2");
}

void max_pool_2x2_gradient(const ConstArrayView& y_gradient, const ImageShape& shape,
                           std::span<const std::uint8_t> winner, const ArrayView& x_gradient) {
  for_each(static_cast<std::int64_t>(y_gradient.size()),
           Backward{on_device(y_gradient), shape, on_device(winner), on_device(x_gradient)},
           "max_pool_2x2_gradient");
}

}  // namespace halfscope::cuda
