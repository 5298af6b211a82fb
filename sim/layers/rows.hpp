// Sums and factors of the rows of a matrix, which layers on rows share.
#pragma once

#include <halfscope/device/array.hpp>

namespace halfscope {

/// (rows): the sum of a b over each row of both (..., columns), in FP32 in ascending order.
[[nodiscard]] Array row_products(const Array& a, const Array& b);

/// x (..., columns) less offset (rows), that of each row.
void subtract_from_rows(const Array& offset, Array& x);

/// x (..., columns) times factor (rows), that of each row. A factor of one number is that of all.
void scale_rows(const Array& factor, Array& x);

}  // namespace halfscope
