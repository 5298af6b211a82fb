// Images with zeros between their pixels: the backward pass of a stride.
#pragma once

#include "lib/nn/elementwise.hpp"

namespace halfscope {

/// y, of `shape`, = zeros, but for every spacing-th row's every spacing-th pixel, from the first on: those
/// are x's (batch, height / spacing, width / spacing, channels), its extents rounded up. Throws
/// InvalidArgument where the sizes do not fit.
void spread(const ConstArrayView& x, const ImageShape& shape, std::int64_t spacing, const ArrayView& y);

/// The same of arrays on the device, which the above calls where that is the active one.
namespace cuda {
void spread(const ConstArrayView& x, const ImageShape& shape, std::int64_t spacing, const ArrayView& y);
}  // namespace cuda

}  // namespace halfscope
