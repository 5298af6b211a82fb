// Windows of pooling: where they lie in an image and its border.
#pragma once

#include <cstdint>

#include <halfscope/core/host_device.hpp>

#include "lib/nn/elementwise.hpp"

namespace halfscope {

/// Treatment of the last window where it does not lie within the image and its border.
enum class PartialWindow : std::uint8_t { dropped, kept };

/// Squares of `size` pixels, their corners `stride` apart, from `padding` pixels outside the image on. Pixels
/// outside the image are in no window's maximum.
struct PoolWindow {
  std::int64_t size = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;  ///< below `size`
  PartialWindow partial = PartialWindow::dropped;

  /// Windows along an axis of so many pixels; 0 where none fits. A window that is kept begins inside the
  /// image.
  [[nodiscard]] std::int64_t count(std::int64_t pixels) const {
    const std::int64_t rest = pixels + 2 * padding - size;
    if (partial == PartialWindow::dropped) return rest < 0 ? 0 : rest / stride + 1;
    const std::int64_t windows = (rest < 0 ? 0 : (rest + stride - 1) / stride) + 1;
    return (windows - 1) * stride >= pixels + padding ? windows - 1 : windows;
  }
};

/// From `first` to before `last`.
struct PixelRange {
  std::int64_t first, last;
};

/// The pixels of a window along an axis, those outside the image left out.
[[nodiscard]] HALFSCOPE_HD PixelRange pixels_of(const PoolWindow& window, std::int64_t index,
                                                std::int64_t pixels) {
  const std::int64_t corner = index * window.stride - window.padding, end = corner + window.size;
  return {corner < 0 ? 0 : corner, end < pixels ? end : pixels};
}

/// The windows, of `count` along an axis, that a pixel lies in.
[[nodiscard]] HALFSCOPE_HD PixelRange windows_of(const PoolWindow& window, std::int64_t pixel,
                                                 std::int64_t count) {
  const std::int64_t from_border = pixel + window.padding, before = from_border - window.size;
  const std::int64_t last = from_border / window.stride + 1;
  return {before < 0 ? 0 : before / window.stride + 1, last < count ? last : count};
}

/// Shape of what pooling makes of images of `shape`.
[[nodiscard]] inline ImageShape pooled_shape(const ImageShape& shape, const PoolWindow& window) {
  return {shape.batch, window.count(shape.height), window.count(shape.width), shape.channels};
}

}  // namespace halfscope
