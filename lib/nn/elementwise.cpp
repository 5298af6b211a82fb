// Checks sizes and splits the element-wise loops over the threads.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include <halfscope/core/parallel.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/detail/transpose_tile.hpp>

#include "lib/nn/elementwise.hpp"
#include "lib/nn/sizes.hpp"

namespace halfscope {
namespace {

/// Calls body(first, count) for pieces of `values`.
template <typename Body>
void for_pieces(const ConstArrayView& values, Body&& body) {
  parallel_for_ranges(static_cast<std::int64_t>(values.size()), elements_per_task, body);
}

}  // namespace

void relu(const ConstArrayView& x, const ArrayView& y) {
  check_sizes("relu", x.size(), y.size());
  if (active_device() == Device::cuda) return cuda::relu(x, y);
  const float* from = x.floats().data();
  float* to = y.floats().data();
  for_pieces(x, [&](std::int64_t first, std::int64_t count) {
    dispatch_isa([&]<Isa isa>() { ElementwiseLoops<isa>::relu(from + first, to + first, count); });
  });
}

void relu_gradient(const ConstArrayView& y, const ArrayView& gradient) {
  check_sizes("relu_gradient", y.size(), gradient.size());
  if (active_device() == Device::cuda) return cuda::relu_gradient(y, gradient);
  const float* outputs = y.floats().data();
  float* gradients = gradient.floats().data();
  for_pieces(y, [&](std::int64_t first, std::int64_t count) {
    dispatch_isa(
        [&]<Isa isa>() { ElementwiseLoops<isa>::relu_gradient(outputs + first, gradients + first, count); });
  });
}

void scale_unless_positive(const ConstArrayView& x, float factor, std::span<float> values) {
  check_sizes("scale_unless_positive", x.size(), values.size());
  if (active_device() == Device::cuda) return cuda::scale_unless_positive(x, factor, values);
  const float* signs = x.floats().data();
  for_pieces(x, [&](std::int64_t first, std::int64_t count) {
    dispatch_isa([&]<Isa isa>() {
      ElementwiseLoops<isa>::scale_unless_positive(signs + first, factor, values.data() + first, count);
    });
  });
}

void add_to_rows(const ConstArrayView& bias, std::span<float> y) {
  if (bias.empty() || y.size() % bias.size() != 0) {
    throw InvalidArgument(
        fmt::format("add_to_rows: {} elements are no whole rows of {}", y.size(), bias.size()));
  }
  if (active_device() == Device::cuda) return cuda::add_to_rows(bias, y);
  const float* addends = bias.floats().data();
  const auto columns = static_cast<std::int64_t>(bias.size());
  const std::int64_t rows = static_cast<std::int64_t>(y.size()) / columns;
  parallel_for_ranges(rows, std::max<std::int64_t>(1, elements_per_task / columns),
                      [&](std::int64_t first, std::int64_t count) {
                        dispatch_isa([&]<Isa isa>() {
                          ElementwiseLoops<isa>::add_to_rows(addends, y.data() + first * columns, count,
                                                             columns);
                        });
                      });
}

void add(const ConstArrayView& addend, std::span<float> sum) {
  check_sizes("add", addend.size(), sum.size());
  if (active_device() == Device::cuda) return cuda::add(addend, sum);
  const float* addends = addend.floats().data();
  for_pieces(sum, [&](std::int64_t first, std::int64_t count) {
    dispatch_isa([&]<Isa isa>() { ElementwiseLoops<isa>::add(addends + first, sum.data() + first, count); });
  });
}

void scale(const ConstArrayView& x, float factor, std::span<float> y) {
  check_sizes("scale", x.size(), y.size());
  if (active_device() == Device::cuda) return cuda::scale(x, factor, y);
  const float* from = x.floats().data();
  for_pieces(x, [&](std::int64_t first, std::int64_t count) {
    dispatch_isa(
        [&]<Isa isa>() { ElementwiseLoops<isa>::scale(from + first, factor, y.data() + first, count); });
  });
}

namespace {

std::uint32_t largest_magnitude_bits(const ConstArrayView& x) {
  const float* values = x.floats().data();
  std::atomic<std::uint32_t> largest{0};  // as bits, which order as the magnitudes do, NaNs above infinity
  for_pieces(x, [&](std::int64_t first, std::int64_t count) {
    const std::uint32_t piece = dispatch_isa(
        [&]<Isa isa>() { return ElementwiseLoops<isa>::largest_magnitude_bits(values + first, count); });
    std::uint32_t seen = largest.load(std::memory_order_relaxed);
    while (piece > seen && !largest.compare_exchange_weak(seen, piece, std::memory_order_relaxed)) {
    }
  });
  return largest;
}

}  // namespace

float largest_magnitude(const ConstArrayView& x) {
  if (active_device() == Device::cuda) return cuda::largest_magnitude(x);
  return from_bits(largest_magnitude_bits(x));
}

void raise_to_largest(const ConstArrayView& x, std::span<std::uint32_t> largest) {
  if (active_device() == Device::cuda) return cuda::raise_to_largest(x, largest);
  largest[0] = std::max(largest[0], largest_magnitude_bits(x));
}

void transpose(const ConstArrayView& x, std::int64_t rows, std::int64_t columns, const ArrayView& y) {
  check_sizes("transpose", x.size(), y.size());
  check_sizes("transpose", x.size(), static_cast<std::size_t>(rows * columns));
  if (active_device() == Device::cuda) return cuda::transpose(x, rows, columns, y);
  const std::span<const float> from = x.floats();
  const std::span<float> to = y.floats();
  parallel_for((columns + transposed_tile - 1) / transposed_tile, [&](std::int64_t task) noexcept {
    const std::int64_t first = task * transposed_tile, last = std::min(columns, first + transposed_tile);
    for (std::int64_t r = 0; r < rows; r += transposed_tile) {
      transpose_tile({from.data() + r * columns + first, columns}, {to.data() + first * rows + r, rows},
                     std::min(transposed_tile, rows - r), last - first);
    }
  });
}

void pad_images(const ConstArrayView& x, const ImageShape& shape, const Border& border,
                const ArrayView& padded) {
  const std::int64_t row = shape.width * shape.channels;
  const std::int64_t padded_row = (shape.width + 2 * border.columns) * shape.channels;
  const std::int64_t padded_image = (shape.height + 2 * border.rows) * padded_row;
  check_sizes("pad_images", x.size(), static_cast<std::size_t>(shape.batch * shape.height * row));
  check_sizes("pad_images", padded.size(), static_cast<std::size_t>(shape.batch * padded_image));
  if (active_device() == Device::cuda) return cuda::pad_images(x, shape, border, padded);
  const float* from = x.floats().data();
  float* images = padded.floats().data();
  parallel_for(shape.batch, [&](std::int64_t image) noexcept {
    float* to = images + image * padded_image;
    std::fill(to, to + padded_image, 0.0f);
    for (std::int64_t y = 0; y < shape.height; ++y) {
      std::memcpy(to + (y + border.rows) * padded_row + border.columns * shape.channels,
                  from + (image * shape.height + y) * row, static_cast<std::size_t>(row) * sizeof(float));
    }
  });
}

}  // namespace halfscope
