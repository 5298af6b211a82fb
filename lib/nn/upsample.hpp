// Nearest-neighbour upsampling of images with the channel last.
#pragma once

#include <span>

#include "lib/nn/elementwise.hpp"

namespace halfscope {

/// y (batch, height * factor, width * factor, channels): each pixel of x becomes a square of equal ones.
/// Throws RequestError where the sizes do not fit `shape`, that of x.
void upsample(const ConstValues& x, const ImageShape& shape, std::int64_t factor, const Values& y);

/// x_gradient = the sums of the squares' pixels in y_gradient, added to zero row by row.
void upsample_gradient(const ConstValues& y_gradient, const ImageShape& shape, std::int64_t factor,
                       std::span<float> x_gradient);

/// The same of arrays on the device, which the above call where that is the active one.
namespace cuda {
void upsample(const ConstValues& x, const ImageShape& shape, std::int64_t factor, const Values& y);
void upsample_gradient(const ConstValues& y_gradient, const ImageShape& shape, std::int64_t factor,
                       std::span<float> x_gradient);
}  // namespace cuda

}  // namespace halfscope
