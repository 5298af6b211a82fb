// Checks sizes and splits the rows of pixels over the threads.
#include <algorithm>
#include <cstring>

#include <halfscope/core/parallel.hpp>

#include "lib/nn/upsample.hpp"

namespace halfscope {
namespace {

/// One row of small pixels and the `factor` rows of large ones that it becomes.
struct Rows {
  std::int64_t width, channels, factor;
  [[nodiscard]] std::int64_t small() const { return width * channels; }
  [[nodiscard]] std::int64_t large() const { return width * factor * channels; }
};

void spread_row(const Rows& rows, const float* x, float* y) {
  float* to = y;
  const std::size_t bytes = static_cast<std::size_t>(rows.channels) * sizeof(float);
  for (std::int64_t i = 0; i < rows.width; ++i) {
    for (std::int64_t copy = 0; copy < rows.factor; ++copy, to += rows.channels) {
      std::memcpy(to, x + i * rows.channels, bytes);
    }
  }
  for (std::int64_t copy = 1; copy < rows.factor; ++copy) {
    std::memcpy(y + copy * rows.large(), y, static_cast<std::size_t>(rows.large()) * sizeof(float));
  }
}

void sum_rows(const Rows& rows, const float* y, float* x) {
  std::fill_n(x, rows.small(), 0.0f);
  for (std::int64_t row = 0; row < rows.factor; ++row) {
    for (std::int64_t i = 0; i < rows.width; ++i) {
      float* to = x + i * rows.channels;
      for (std::int64_t copy = 0; copy < rows.factor; ++copy, y += rows.channels) {
        for (std::int64_t c = 0; c < rows.channels; ++c) to[c] += y[c];
      }
    }
  }
}

void check_upsampled(const ImageShape& shape, std::int64_t factor, std::size_t small, std::size_t large) {
  const std::int64_t elements = shape.batch * shape.height * shape.width * shape.channels;
  if (factor >= 1 && static_cast<std::int64_t>(small) == elements &&
      static_cast<std::int64_t>(large) == elements * factor * factor) {
    return;
  }
  throw InvalidArgument("upsample: the arrays do not have the sizes that the shape and the factor ask for");
}

}  // namespace

void upsample(const ConstArrayView& images, const ImageShape& shape, std::int64_t factor,
              const ArrayView& large) {
  check_upsampled(shape, factor, images.size(), large.size());
  if (active_device() == Device::cuda) return cuda::upsample(images, shape, factor, large);
  const std::span<const float> x = images.floats();
  const std::span<float> y = large.floats();
  const Rows rows{shape.width, shape.channels, factor};
  parallel_for(shape.batch * shape.height, [&](std::int64_t r) noexcept {
    spread_row(rows, x.data() + r * rows.small(), y.data() + r * factor * rows.large());
  });
}

void upsample_gradient(const ConstArrayView& of_large, const ImageShape& shape, std::int64_t factor,
                       std::span<float> x_gradient) {
  check_upsampled(shape, factor, x_gradient.size(), of_large.size());
  if (active_device() == Device::cuda) return cuda::upsample_gradient(of_large, shape, factor, x_gradient);
  const std::span<const float> y_gradient = of_large.floats();
  const Rows rows{shape.width, shape.channels, factor};
  parallel_for(shape.batch * shape.height, [&](std::int64_t r) noexcept {
    sum_rows(rows, y_gradient.data() + r * factor * rows.large(), x_gradient.data() + r * rows.small());
  });
}

}  // namespace halfscope
