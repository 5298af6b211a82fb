// Operations on some columns of matrices, such as one gate of a recurrent cell: what layers do between their
// products.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/core/array_view.hpp>
#include <halfscope/device/device.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

/// `columns` neighbouring numbers of each of `rows` rows in each of `batch` matrices.
struct ColumnExtents {
  std::int64_t rows = 0, columns = 0;
  std::int64_t batch = 1;
};

/// Where they are: number c of row r in matrix n is values[first + n * matrix + r * row + c]. With a `row` of
/// 0 all rows are the same one. On the device the numbers may have 16 bits; where what is made of them may
/// not fit those it is to go to floats.
struct ConstColumns {
  ConstArrayView values;
  std::int64_t first = 0, row = 0, matrix = 0;
};
struct Columns {
  ArrayView values;
  std::int64_t first = 0, row = 0, matrix = 0;

  operator ConstColumns() const { return {values, first, row, matrix}; }
};

/// Operation on two numbers.
enum class Combination : std::uint8_t {
  sum,               ///< a + b
  difference,        ///< a - b
  product,           ///< a * b
  tanh_gradient,     ///< a * (1 - b * b): a is the gradient of b = tanh(x), the result that of x
  sigmoid_gradient,  ///< a * (b * (1 - b)), likewise
};

/// y = a combined with b, number by number; y may be a or b, or columns beside them. Each of these throws
/// InvalidArgument where an array is too small for its columns.
void combine(Combination combination, const ColumnExtents& extents, const ConstColumns& a,
             const ConstColumns& b, const Columns& y);
/// `combine` over whole arrays of one size.
void combine(Combination combination, const ConstArrayView& a, const ConstArrayView& b, std::span<float> y);
/// y = function(x); y may be x.
void apply(Elementary function, const ColumnExtents& extents, const ConstColumns& x, const Columns& y);
/// y = x, which do not overlap.
void copy_columns(const ColumnExtents& extents, const ConstColumns& x, const Columns& y);

/// The same operations on the device, which the functions above call where that is the active one.
namespace cuda {
void combine(Combination combination, const ColumnExtents& extents, const ConstColumns& a,
             const ConstColumns& b, const Columns& y);
void apply(Elementary function, const ColumnExtents& extents, const ConstColumns& x, const Columns& y);
void copy_columns(const ColumnExtents& extents, const ConstColumns& x, const Columns& y);
}  // namespace cuda

/// `count` rows of `columns` numbers in one thread; the three arrays' rows are `strides` apart.
template <Isa isa>
struct ColumnLoops {
  struct Rows {
    std::int64_t count, columns;
    std::int64_t strides[3];
  };
  static void combine(Combination combination, const Rows& rows, const float* a, const float* b, float* y);
};

}  // namespace halfscope
