// Images with zeros between their pixels: the backward pass of a stride.
#pragma once

#include "lib/nn/elementwise.hpp"
#include "lib/nn/stride.hpp"

namespace halfscope {

/// y, of `shape`, = zeros, but for one row in `spacing.rows` and of it one pixel in `spacing.columns`, from
/// the first on: those are x's (batch, height / spacing.rows, width / spacing.columns, channels), its extents
/// rounded up. Throws InvalidArgument where the sizes do not fit.
void spread(const ConstArrayView& x, const ImageShape& shape, const Stride& spacing, const ArrayView& y);

/// The same operations on the device, which the function above calls where that is the active one.
namespace cuda {
void spread(const ConstArrayView& x, const ImageShape& shape, const Stride& spacing, const ArrayView& y);
}  // namespace cuda

}  // namespace halfscope
