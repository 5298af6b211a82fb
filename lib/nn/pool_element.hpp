// Which pixels a window has and which windows a pixel, for the loops on the CPU and on the device.
#pragma once

#include "lib/nn/pool.hpp"

namespace halfscope {

/// A place in images (batch, rows, columns, channels).
struct PoolPlace {
  std::int64_t image, row, column, channel;
};
[[nodiscard]] HALFSCOPE_HD PoolPlace place_of(std::int64_t i, const ImageShape& shape) {
  const std::int64_t pixel = i / shape.channels;
  return {pixel / shape.width / shape.height, pixel / shape.width % shape.height, pixel % shape.width,
          i % shape.channels};
}
[[nodiscard]] HALFSCOPE_HD std::int64_t index_of(const PoolPlace& place, const ImageShape& shape) {
  return ((place.image * shape.height + place.row) * shape.width + place.column) * shape.channels +
         place.channel;
}

/// Images, the windows over them, and the shape of what those make.
struct Pooling {
  ImageShape images, pooled;
  PoolWindow window;

  /// Which of the window's pixels (row, column) is.
  [[nodiscard]] HALFSCOPE_HD std::int64_t pixel_in(const PoolPlace& of_window, std::int64_t row,
                                                   std::int64_t column) const {
    return (row - (of_window.row * window.stride - window.padding)) * window.size + column -
           (of_window.column * window.stride - window.padding);
  }
  /// Calls body(row, column) for the pixels of a window, row by row.
  template <typename Body>
  HALFSCOPE_HD void for_pixels(const PoolPlace& of_window, const Body& body) const {
    const PixelRange rows = pixels_of(window, of_window.row, images.height),
                     columns = pixels_of(window, of_window.column, images.width);
    for (std::int64_t r = rows.first; r < rows.last; ++r) {
      for (std::int64_t c = columns.first; c < columns.last; ++c) body(r, c);
    }
  }
  /// Calls body(place in the pooled images) for the windows of a pixel, row by row.
  template <typename Body>
  HALFSCOPE_HD void for_windows(const PoolPlace& of_pixel, const Body& body) const {
    const PixelRange rows = windows_of(window, of_pixel.row, pooled.height),
                     columns = windows_of(window, of_pixel.column, pooled.width);
    for (std::int64_t r = rows.first; r < rows.last; ++r) {
      for (std::int64_t c = columns.first; c < columns.last; ++c) {
        body(PoolPlace{of_pixel.image, r, c, of_pixel.channel});
      }
    }
  }
  /// Divisor of the sum over a window.
  [[nodiscard]] HALFSCOPE_HD float divisor(const PoolPlace& of_window, AverageOver over) const {
    if (over == AverageOver::window) return static_cast<float>(window.size * window.size);
    const PixelRange rows = pixels_of(window, of_window.row, images.height),
                     columns = pixels_of(window, of_window.column, images.width);
    return static_cast<float>((rows.last - rows.first) * (columns.last - columns.first));
  }
};

}  // namespace halfscope
