// Nearest-neighbour upsampling of images with the channel last.
#pragma once

#include <span>

#include "lib/nn/elementwise.hpp"

namespace halfscope {

/// y (batch, height * factor, width * factor, channels): each pixel of x becomes a square of equal ones.
/// Throws InvalidArgument where the sizes do not fit `shape`, that of x.
void upsample(const ConstArrayView& x, const ImageShape& shape, std::int64_t factor, const ArrayView& y);

/// x_gradient = the sums of the squares' pixels in y_gradient, added to zero row by row.
void upsample_gradient(const ConstArrayView& y_gradient, const ImageShape& shape, std::int64_t factor,
                       std::span<float> x_gradient);

/// The same operations on the device, which the functions above call where that is the active one.
namespace cuda {
void upsample(const ConstArrayView& x, const ImageShape& shape, std::int64_t factor, const ArrayView& y);
void upsample_gradient(const ConstArrayView& y_gradient, const ImageShape& shape, std::int64_t factor,
                       std::span<float> x_gradient);
}  // namespace cuda

}  // namespace halfscope
