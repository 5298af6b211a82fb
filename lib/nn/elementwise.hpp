// Element-wise loops of training: every output depends on its own inputs alone, so threads never change a
// bit. Inputs, and outputs that are numbers of the inputs or zeros, may have 16 bits on the device.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/core/array_view.hpp>
#include <halfscope/device/device.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

/// y = max(x, 0); a NaN becomes 0, as max(NaN, 0) does in IEEE 754-2008's maxNum.
void relu(const ConstArrayView& x, const ArrayView& y);
/// gradient[i] = 0 wherever y[i] is not positive.
void relu_gradient(const ConstArrayView& y, const ArrayView& gradient);
/// values[i] *= factor wherever x[i] is not positive, a NaN included; x and values may be the same.
void scale_unless_positive(const ConstArrayView& x, float factor, std::span<float> values);
/// Adds bias (columns) to every row of y (rows, columns).
void add_to_rows(const ConstArrayView& bias, std::span<float> y);
/// sum += addend.
void add(const ConstArrayView& addend, std::span<float> sum);
/// y = x * factor; x and y may be the same.
void scale(const ConstArrayView& x, float factor, std::span<float> y);
/// The largest magnitude, 0 of nothing; where any element is infinite or NaN it is one of those.
[[nodiscard]] float largest_magnitude(const ConstArrayView& x);
/// Raises the one magnitude, as bits, in `largest` to that of x; the device is not waited for.
void raise_to_largest(const ConstArrayView& x, std::span<std::uint32_t> largest);

/// y (columns, rows) = the transpose of x (rows, columns).
void transpose(const ConstArrayView& x, std::int64_t rows, std::int64_t columns, const ArrayView& y);

/// Extents of images with the channel last: (batch, height, width, channels).
struct ImageShape {
  std::int64_t batch, height, width, channels;
};
/// Zeros around an image: so many rows above and below, so many columns on either side.
struct Border {
  std::int64_t rows = 0, columns = 0;
};
/// padded (batch, height + 2 rows, width + 2 columns, channels) = x with a border of zeros.
void pad_images(const ConstArrayView& x, const ImageShape& shape, const Border& border,
                const ArrayView& padded);

/// The same operations on the device, which the functions above call where that is the active one.
namespace cuda {
void relu(const ConstArrayView& x, const ArrayView& y);
void relu_gradient(const ConstArrayView& y, const ArrayView& gradient);
void scale_unless_positive(const ConstArrayView& x, float factor, std::span<float> values);
void add_to_rows(const ConstArrayView& bias, std::span<float> y);
void add(const ConstArrayView& addend, std::span<float> sum);
void scale(const ConstArrayView& x, float factor, std::span<float> y);
[[nodiscard]] float largest_magnitude(const ConstArrayView& x);
void raise_to_largest(const ConstArrayView& x, std::span<std::uint32_t> largest);
void transpose(const ConstArrayView& x, std::int64_t rows, std::int64_t columns, const ArrayView& y);
void pad_images(const ConstArrayView& x, const ImageShape& shape, const Border& border,
                const ArrayView& padded);
}  // namespace cuda

/// The loops themselves, over `count` elements (or `rows` of `columns`) in one thread, per instruction set.
template <Isa isa>
struct ElementwiseLoops {
  static void relu(const float* x, float* y, std::int64_t count);
  static void relu_gradient(const float* y, float* gradient, std::int64_t count);
  static void scale_unless_positive(const float* x, float factor, float* values, std::int64_t count);
  static void add_to_rows(const float* bias, float* y, std::int64_t rows, std::int64_t columns);
  static void add(const float* addend, float* sum, std::int64_t count);
  static void scale(const float* x, float factor, float* y, std::int64_t count);
  static std::uint32_t largest_magnitude_bits(const float* x, std::int64_t count);
};

}  // namespace halfscope
