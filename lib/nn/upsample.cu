// Upsampling on the device, one thread per number that is written.
#include <halfscope/kernel/detail/launch.cuh>

#include "lib/nn/upsample.hpp"

namespace halfscope::cuda {
namespace {

struct Upsample {
  ElementReader x;
  ImageShape shape;
  std::int64_t factor;
  ElementWriter y;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t width = shape.width * factor;
    const std::int64_t channel = i % shape.channels, pixel = i / shape.channels;
    const std::int64_t column = pixel % width / factor, row = pixel / width / factor;
    y.set(i, x[(row * shape.width + column) * shape.channels + channel]);
  }
};

struct UpsampleGradient {
  ElementReader y_gradient;
  ImageShape shape;
  std::int64_t factor;
  float* x_gradient;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t width = shape.width * factor;
    const std::int64_t channel = i % shape.channels, pixel = i / shape.channels;
    const std::int64_t column = pixel % shape.width * factor, row = pixel / shape.width * factor;
    float sum = 0;
    for (std::int64_t r = row; r < row + factor; ++r) {
      for (std::int64_t c = column; c < column + factor; ++c) {
        sum += y_gradient[(r * width + c) * shape.channels + channel];
      }
    }
    x_gradient[i] = sum;
  }
};

}  // namespace

void upsample(const ConstArrayView& x, const ImageShape& shape, std::int64_t factor, const ArrayView& y) {
  for_each(static_cast<std::int64_t>(y.size()), Upsample{on_device(x), shape, factor, on_device(y)},
           "upsample");
}

void upsample_gradient(const ConstArrayView& y_gradient, const ImageShape& shape, std::int64_t factor,
                       std::span<float> x_gradient) {
  for_each(static_cast<std::int64_t>(x_gradient.size()),
           UpsampleGradient{on_device(y_gradient), shape, factor, on_device(x_gradient)},
           "upsample_gradient");
}

}  // namespace halfscope::cuda
