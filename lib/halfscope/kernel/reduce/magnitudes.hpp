// Sums of magnitudes along an axis of an array.
#pragma once

#include <cstddef>
#include <span>

namespace halfscope {

/// Extents of a dense array (outer, summed, inner) around the axis that a sum runs over.
struct AxisExtents {
  std::size_t outer = 1, summed = 1, inner = 1;
};

/// Sums of |x| over the middle axis of `values` (outer, summed, inner) into `sums` (outer, inner), in double.
/// In CPU memory, and in as many threads as there are, on which the sums do not depend, nor on the
/// instruction set. Throws InvalidArgument where a size is not that of `axis`.
void magnitude_sums(std::span<const float> values, const AxisExtents& axis, std::span<double> sums);

}  // namespace halfscope
