// Rows of pooling, a vector of channels at a time, compiled once per instruction set.
#include "lib/nn/channel_lanes.hpp"
#include "lib/nn/pool.hpp"
#include "lib/nn/pool_element.hpp"

namespace halfscope {
namespace {

/// Calls body(place of a pixel's first channel) for each pixel of a row.
template <typename Body>
void for_pixels_of_row(const ImageShape& shape, std::int64_t row, const Body& body) {
  for (std::int64_t column = 0; column < shape.width; ++column) {
    body(PoolPlace{row / shape.height, row % shape.height, column, 0});
  }
}

}  // namespace

template <Isa isa>
void PoolLoops<isa>::max(const Pooling& pooling, std::int64_t row, const float* x, float* y,
                         std::uint8_t* winner) {
  for_pixels_of_row(pooling.pooled, row, [&](const PoolPlace& of_window) {
    const std::int64_t to = index_of(of_window, pooling.pooled);
    for_channels(pooling.images.channels, [&](std::int64_t c, std::size_t count) {
      FloatVec largest{};
      Ints at{};
      bool first = true;
      pooling.for_pixels(of_window, [&](std::int64_t r, std::int64_t column) {
        const FloatVec here = load_some(x + index_of({of_window.image, r, column, c}, pooling.images), count);
        const Ints pixel = Ints{} + static_cast<std::int32_t>(pooling.pixel_in(of_window, r, column));
        const Ints won = first ? ~Ints{} : Ints(here > largest);
        at = won ? pixel : at;
        largest = won ? here : largest;
        first = false;
      });
      store_some(y + to + c, largest, count);
      store_bytes(winner + to + c, at, count);
    });
  });
}

template <Isa isa>
void PoolLoops<isa>::max_gradient(const Pooling& pooling, std::int64_t row, const float* y_gradient,
                                  const std::uint8_t* winner, float* x_gradient) {
  for_pixels_of_row(pooling.images, row, [&](const PoolPlace& of_pixel) {
    const std::int64_t to = index_of(of_pixel, pooling.images);
    for_channels(pooling.images.channels, [&](std::int64_t c, std::size_t count) {
      FloatVec sum{};
      pooling.for_windows(of_pixel, [&](const PoolPlace& of_window) {
        const std::int64_t at = index_of(of_window, pooling.pooled) + c;
        const auto pixel =
            static_cast<std::int32_t>(pooling.pixel_in(of_window, of_pixel.row, of_pixel.column));
        const FloatVec gradient = load_some(y_gradient + at, count);
        sum += load_bytes(winner + at, count) == Ints{} + pixel ? gradient : FloatVec{};
      });
      store_some(x_gradient + to + c, sum, count);
    });
  });
}

template <Isa isa>
void PoolLoops<isa>::average(const Pooling& pooling, std::int64_t row, AverageOver over, const float* x,
                             float* y) {
  for_pixels_of_row(pooling.pooled, row, [&](const PoolPlace& of_window) {
    const std::int64_t to = index_of(of_window, pooling.pooled);
    const float divisor = pooling.divisor(of_window, over);
    for_channels(pooling.images.channels, [&](std::int64_t c, std::size_t count) {
      FloatVec sum{};
      pooling.for_pixels(of_window, [&](std::int64_t r, std::int64_t column) {
        sum += load_some(x + index_of({of_window.image, r, column, c}, pooling.images), count);
      });
      store_some(y + to + c, sum / divisor, count);
    });
  });
}

template <Isa isa>
void PoolLoops<isa>::average_gradient(const Pooling& pooling, std::int64_t row, AverageOver over,
                                      const float* y_gradient, float* x_gradient) {
  for_pixels_of_row(pooling.images, row, [&](const PoolPlace& of_pixel) {
    const std::int64_t to = index_of(of_pixel, pooling.images);
    for_channels(pooling.images.channels, [&](std::int64_t c, std::size_t count) {
      FloatVec sum{};
      pooling.for_windows(of_pixel, [&](const PoolPlace& of_window) {
        const FloatVec gradient = load_some(y_gradient + index_of(of_window, pooling.pooled) + c, count);
        sum += gradient / pooling.divisor(of_window, over);
      });
      store_some(x_gradient + to + c, sum, count);
    });
  });
}

template struct PoolLoops<target_isa>;

}  // namespace halfscope
