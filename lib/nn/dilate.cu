// Zeros between pixels on the device, one thread per number that is written.
#include <halfscope/kernel/detail/launch.cuh>

#include "lib/nn/dilate.hpp"

namespace halfscope::cuda {
namespace {

struct Spread {
  ElementReader x;
  ImageShape shape;
  Stride spacing;
  ElementWriter y;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t channel = i % shape.channels, pixel = i / shape.channels;
    const std::int64_t column = pixel % shape.width, line = pixel / shape.width;
    const std::int64_t row = line % shape.height, image = line / shape.height;
    if (row % spacing.rows != 0 || column % spacing.columns != 0) {
      y.set(i, 0.0f);
      return;
    }
    const std::int64_t height = (shape.height + spacing.rows - 1) / spacing.rows;
    const std::int64_t width = (shape.width + spacing.columns - 1) / spacing.columns;
    y.set(i, x[((image * height + row / spacing.rows) * width + column / spacing.columns) * shape.channels +
               channel]);
  }
};

}  // namespace

void spread(const ConstArrayView& x, const ImageShape& shape, const Stride& spacing, const ArrayView& y) {
  for_each(static_cast<std::int64_t>(y.size()), Spread{on_device(x), shape, spacing, on_device(y)}, "spread");
}

}  // namespace halfscope::cuda
