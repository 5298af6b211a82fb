// Checks shapes and splits the rows of pooling windows over the threads.
#include <fmt/format.h>

#include <halfscope/core/parallel.hpp>

#include "lib/nn/max_pool.hpp"

namespace halfscope {
namespace {

void check(const ImageShape& shape, std::size_t full, std::size_t pooled, std::size_t winners) {
  if (shape.height % 2 != 0 || shape.width % 2 != 0) {
    throw InvalidArgument(fmt::format("max_pool_2x2: a {} by {} image has no whole number of 2x2 windows",
                                      shape.height, shape.width));
  }
  const auto elements = static_cast<std::size_t>(shape.batch * shape.height * shape.width * shape.channels);
  if (full != elements || pooled != elements / 4 || winners != pooled) {
    throw InvalidArgument("max_pool_2x2: the arrays do not have the sizes that the shape asks for");
  }
}

/// Calls body(first element of the upper row, first element of the row of windows) for each row of windows.
template <typename Body>
void for_window_rows(const ImageShape& shape, Body&& body) {
  const std::int64_t row = shape.width * shape.channels;
  parallel_for(shape.batch, [&](std::int64_t image) noexcept {
    for (std::int64_t y = 0; y < shape.height / 2; ++y) {
      const std::int64_t window_row = image * (shape.height / 2) + y;
      body(window_row * 2 * row, window_row * row / 2);
    }
  });
}

}  // namespace

void max_pool_2x2(const ConstArrayView& images, const ImageShape& shape, const ArrayView& pooled,
                  std::span<std::uint8_t> winner) {
  check(shape, images.size(), pooled.size(), winner.size());
  if (active_device() == Device::cuda) return cuda::max_pool_2x2(images, shape, pooled, winner);
  const std::span<const float> x = images.floats();
  const std::span<float> y = pooled.floats();
  const std::int64_t row = shape.width * shape.channels;
  for_window_rows(shape, [&](std::int64_t from, std::int64_t to) {
    dispatch_isa([&]<Isa isa>() {
      MaxPoolLoops<isa>::forward(x.data() + from, x.data() + from + row, shape.width / 2, shape.channels,
                                 y.data() + to, winner.data() + to);
    });
  });
}

void max_pool_2x2_gradient(const ConstArrayView& of_pooled, const ImageShape& shape,
                           std::span<const std::uint8_t> winner, const ArrayView& of_images) {
  check(shape, of_images.size(), of_pooled.size(), winner.size());
  if (active_device() == Device::cuda) {
    return cuda::max_pool_2x2_gradient(of_pooled, shape, winner, of_images);
  }
  const std::span<const float> y_gradient = of_pooled.floats();
  const std::span<float> x_gradient = of_images.floats();
  const std::int64_t row = shape.width * shape.channels;
  for_window_rows(shape, [&](std::int64_t from, std::int64_t to) {
    dispatch_isa([&]<Isa isa>() {
      MaxPoolLoops<isa>::backward(y_gradient.data() + to, winner.data() + to, shape.width / 2, shape.channels,
                                  x_gradient.data() + from, x_gradient.data() + from + row);
    });
  });
}

}  // namespace halfscope
