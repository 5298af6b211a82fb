// Checks sizes and splits the rows of pixels over the threads.
#include <algorithm>
#include <cstring>

#include <halfscope/core/parallel.hpp>

#include "lib/nn/dilate.hpp"

namespace halfscope {
namespace {

void check_dilated(const ImageShape& shape, const Stride& spacing, std::size_t small, std::size_t large) {
  if (spacing.rows >= 1 && spacing.columns >= 1) {
    const std::int64_t height = (shape.height + spacing.rows - 1) / spacing.rows;
    const std::int64_t width = (shape.width + spacing.columns - 1) / spacing.columns;
    const auto elements = [&](std::int64_t pixels) {
      return static_cast<std::size_t>(shape.batch * pixels * shape.channels);
    };
    if (small == elements(height * width) && large == elements(shape.height * shape.width)) return;
  }
  throw InvalidArgument("spread: the arrays do not have the sizes that the shape and the spacing ask for");
}

}  // namespace

void spread(const ConstArrayView& x, const ImageShape& shape, const Stride& spacing, const ArrayView& y) {
  check_dilated(shape, spacing, x.size(), y.size());
  if (active_device() == Device::cuda) return cuda::spread(x, shape, spacing, y);
  const std::int64_t height = (shape.height + spacing.rows - 1) / spacing.rows;
  const std::int64_t width = (shape.width + spacing.columns - 1) / spacing.columns;
  const std::int64_t channels = shape.channels;
  const float* const pixels = x.floats().data();
  float* const spread_pixels = y.floats().data();
  parallel_for(shape.batch * shape.height, [&](std::int64_t line) noexcept {
    float* to = spread_pixels + line * shape.width * channels;
    std::fill_n(to, shape.width * channels, 0.0f);
    const std::int64_t image = line / shape.height, row = line % shape.height;
    if (row % spacing.rows != 0) return;
    const float* from = pixels + (image * height + row / spacing.rows) * width * channels;
    for (std::int64_t i = 0; i < width; ++i, from += channels, to += spacing.columns * channels) {
      std::memcpy(to, from, static_cast<std::size_t>(channels) * sizeof(float));
    }
  });
}

}  // namespace halfscope
