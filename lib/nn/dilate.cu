// Zeros between pixels on the device, one thread per number that is written.
#include <halfscope/kernel/detail/launch.cuh>

#include "lib/nn/dilate.hpp"

namespace halfscope::cuda {
namespace {

struct Spread {
  ElementReader x;
  ImageShape shape;
  std::int64_t spacing;
  ElementWriter y;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t channel = i % shape.channels, pixel = i / shape.channels;
    const std::int64_t column = pixel % shape.width, line = pixel / shape.width;
    const std::int64_t row = line % shape.height, image = line / shape.height;
    if (row % spacing != 0 || column % spacing != 0) {
      y.set(i, 0.0f);
      return;
    }
    const std::int64_t height = (shape.height + spacing - 1) / spacing;
    const std::int64_t width = (shape.width + spacing - 1) / spacing;
    y.set(i, x[((image * height + row / spacing) * width + column / spacing) * shape.channels + channel]);
  }
};

}  // namespace

void spread(const ConstArrayView& x, const ImageShape& shape, std::int64_t spacing, const ArrayView& y) {
  for_each(static_cast<std::int64_t>(y.size()), Spread{on_device(x), shape, spacing, on_device(y)}, "spread");
}

}  // namespace halfscope::cuda
