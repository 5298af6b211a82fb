// Forward and backward of nearest-neighbour upsampling.
#include "sim/layers/upsample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/elementwise.hpp>

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

}  // namespace

TensorRef upsample_nearest(Tape& tape, const std::string& name, TensorRef x, std::int64_t factor) {
  const Shape& shape = tape.value(x).shape();
  if (shape.size() != 4 || factor < 1) {
    throw RequestError(
        fmt::format("layer {}: cannot enlarge {} by {}; give a batch of images and a factor of "
                    "1 or more",
                    name, to_string(shape), factor));
  }
  const Rows rows{shape[2], shape[3], factor};
  const std::int64_t row_count = shape[0] * shape[1];
  Array y({shape[0], shape[1] * factor, shape[2] * factor, shape[3]});
  const float* from = tape.value(x).data();
  parallel_for(row_count, [&](std::int64_t r) noexcept {
    spread_row(rows, from + r * rows.small(), y.data() + r * factor * rows.large());
  });
  const auto backward = [x, rows, row_count](Tape& t, Array gradient) {
    Array x_gradient(t.value(x).shape());
    parallel_for(row_count, [&](std::int64_t r) noexcept {
      sum_rows(rows, gradient.data() + r * rows.factor * rows.large(), x_gradient.data() + r * rows.small());
    });
    t.add_gradient(x, std::move(x_gradient));
  };
  return tape.record({.name = name, .value = std::move(y), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
