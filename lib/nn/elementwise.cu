// Element-wise operations on the device.
#include <halfscope/device/memory.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/detail/launch.cuh>

#include "lib/nn/elementwise.hpp"
#include "lib/nn/elementwise_element.hpp"

namespace halfscope::cuda {
namespace {

std::int64_t count_of(const ConstArrayView& values) {
  return static_cast<std::int64_t>(values.size());
}

struct Relu {
  ElementReader x;
  ElementWriter y;
  HALFSCOPE_HD void operator()(std::int64_t i) const { y.set(i, rectified(x[i])); }
};

struct ReluGradient {
  ElementReader y;
  ElementWriter gradient;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    if (!passes_relu(y[i])) gradient.set(i, 0.0f);
  }
};

struct ScaleUnlessPositive {
  ElementReader x;
  float factor;
  float* values;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    values[i] = scaled_unless_positive(x[i], factor, values[i]);
  }
};

struct AddToRows {
  ElementReader bias;
  std::int64_t columns;
  float* y;
  HALFSCOPE_HD void operator()(std::int64_t i) const { y[i] += bias[i % columns]; }
};

struct Add {
  ElementReader addend;
  float* sum;
  HALFSCOPE_HD void operator()(std::int64_t i) const { sum[i] += addend[i]; }
};

struct Scale {
  ElementReader x;
  float factor;
  float* y;
  HALFSCOPE_HD void operator()(std::int64_t i) const { y[i] = x[i] * factor; }
};

/// Each thread takes a run of elements, so that few of them meet at the one result.
struct LargestMagnitude {
  static constexpr std::int64_t run = 16;
  ElementReader x;
  std::int64_t count;
  std::uint32_t* largest;
  HALFSCOPE_HD void operator()(std::int64_t thread) const {
    std::int32_t here = 0;
    const std::int64_t threads = (count + run - 1) / run;
    for (std::int64_t i = thread; i < count; i += threads) here = larger_magnitude(here, x[i]);
    atomic_max(largest, static_cast<std::uint32_t>(here));
  }
};

struct Transpose {
  ElementReader x;
  std::int64_t rows, columns;
  ElementWriter y;
  HALFSCOPE_HD void operator()(std::int64_t i) const { y.set(i, x[i % rows * columns + i / rows]); }
};

struct PadImages {
  ElementReader x;
  ImageShape shape;
  Border border;
  ElementWriter padded;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t width = shape.width + 2 * border.columns, height = shape.height + 2 * border.rows;
    const std::int64_t channel = i % shape.channels, pixel = i / shape.channels;
    const std::int64_t column = pixel % width - border.columns, row = pixel / width % height - border.rows;
    const std::int64_t image = pixel / width / height;
    const bool inside = row >= 0 && row < shape.height && column >= 0 && column < shape.width;
    const std::int64_t from = ((image * shape.height + row) * shape.width + column) * shape.channels;
    padded.set(i, inside ? x[from + channel] : 0.0f);
  }
};

}  // namespace

void relu(const ConstArrayView& x, const ArrayView& y) {
  for_each(count_of(x), Relu{on_device(x), on_device(y)}, "relu");
}

void relu_gradient(const ConstArrayView& y, const ArrayView& gradient) {
  for_each(count_of(y), ReluGradient{on_device(y), on_device(gradient)}, "relu_gradient");
}

void scale_unless_positive(const ConstArrayView& x, float factor, std::span<float> values) {
  for_each(count_of(x), ScaleUnlessPositive{on_device(x), factor, on_device(values)},
           "scale_unless_positive");
}

void add_to_rows(const ConstArrayView& bias, std::span<float> y) {
  for_each(count_of(y), AddToRows{on_device(bias), count_of(bias), on_device(y)}, "add_to_rows");
}

void add(const ConstArrayView& addend, std::span<float> sum) {
  for_each(count_of(sum), Add{on_device(addend), on_device(sum)}, "add");
}

void scale(const ConstArrayView& x, float factor, std::span<float> y) {
  for_each(count_of(x), Scale{on_device(x), factor, on_device(y)}, "scale");
}

void raise_to_largest(const ConstArrayView& x, std::span<std::uint32_t> largest) {
  const std::int64_t threads = (count_of(x) + LargestMagnitude::run - 1) / LargestMagnitude::run;
  for_each(threads, LargestMagnitude{on_device(x), count_of(x), on_device(largest)}, "largest_magnitude");
}

float largest_magnitude(const ConstArrayView& x) {
  Memory<std::uint32_t> largest = Memory<std::uint32_t>::zeros(1);
  cuda::raise_to_largest(x, largest.values());
  return from_bits(largest.to_host()[0]);
}

void transpose(const ConstArrayView& x, std::int64_t rows, std::int64_t columns, const ArrayView& y) {
  for_each(count_of(x), Transpose{on_device(x), rows, columns, on_device(y)}, "transpose");
}

void pad_images(const ConstArrayView& x, const ImageShape& shape, const Border& border,
                const ArrayView& padded) {
  for_each(count_of(padded), PadImages{on_device(x), shape, border, on_device(padded)}, "pad_images");
}

}  // namespace halfscope::cuda
