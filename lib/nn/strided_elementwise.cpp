// Checks columns and splits their rows over the threads.
#include <algorithm>
#include <cstring>
#include <string>

#include <halfscope/core/parallel.hpp>

#include "lib/nn/elementary.hpp"
#include "lib/nn/sizes.hpp"
#include "lib/nn/strided_elementwise.hpp"

namespace halfscope {
namespace {

void check(const char* operation, const ColumnExtents& extents, const ConstColumns& where) {
  if (extents.batch * extents.rows * extents.columns == 0) return;
  const std::int64_t end =
      where.first + (extents.batch - 1) * where.matrix + (extents.rows - 1) * where.row + extents.columns;
  if (where.first < 0 || where.row < 0 || where.matrix < 0 ||
      end > static_cast<std::int64_t>(where.values.size())) {
    throw InvalidArgument(std::string(operation) + ": " + std::to_string(extents.columns) + " columns of " +
                          std::to_string(extents.rows) + " rows do not lie within an array of " +
                          std::to_string(where.values.size()));
  }
}

/// One row after another without a gap: all of them are one long row.
bool is_contiguous(const ColumnExtents& extents, const ConstColumns& where) {
  return (extents.rows == 1 || where.row == extents.columns) &&
         (extents.batch == 1 || where.matrix == extents.rows * extents.columns);
}

/// Calls body(matrix, first row, rows) for pieces of the rows.
template <typename Body>
void for_rows(const ColumnExtents& extents, Body&& body) {
  const std::int64_t rows =
      std::max<std::int64_t>(1, elements_per_task / std::max<std::int64_t>(1, extents.columns));
  const std::int64_t pieces = (extents.rows + rows - 1) / rows;
  parallel_for(extents.batch * pieces, [&](std::int64_t piece) noexcept {
    const std::int64_t first = piece % pieces * rows;
    body(piece / pieces, first, std::min(rows, extents.rows - first));
  });
}

/// The first number of a row.
std::int64_t offset(const ConstColumns& where, std::int64_t matrix, std::int64_t row) {
  return where.first + matrix * where.matrix + row * where.row;
}

}  // namespace

void combine(Combination combination, const ConstArrayView& a, const ConstArrayView& b, std::span<float> y) {
  if (a.size() != y.size() || b.size() != y.size())
    throw InvalidArgument("combine: the arrays differ in size");
  const auto count = static_cast<std::int64_t>(y.size());
  if (active_device() == Device::cuda) return cuda::combine(combination, {1, count}, {a}, {b}, {y});
  const float* left = a.floats().data();
  const float* right = b.floats().data();
  parallel_for_ranges(count, elements_per_task, [&](std::int64_t first, std::int64_t here) {
    dispatch_isa([&]<Isa isa>() {
      ColumnLoops<isa>::combine(combination, {1, here, {}}, left + first, right + first, y.data() + first);
    });
  });
}

void combine(Combination combination, const ColumnExtents& extents, const ConstColumns& a,
             const ConstColumns& b, const Columns& y) {
  for (const ConstColumns& where : {a, b, ConstColumns(y)}) check("combine", extents, where);
  if (active_device() == Device::cuda) return cuda::combine(combination, extents, a, b, y);
  const float* left = a.values.floats().data();
  const float* right = b.values.floats().data();
  float* to = y.values.floats().data();
  for_rows(extents, [&](std::int64_t matrix, std::int64_t row, std::int64_t count) {
    dispatch_isa([&]<Isa isa>() {
      ColumnLoops<isa>::combine(combination, {count, extents.columns, {a.row, b.row, y.row}},
                                left + offset(a, matrix, row), right + offset(b, matrix, row),
                                to + offset(y, matrix, row));
    });
  });
}

void apply(Elementary function, const ColumnExtents& extents, const ConstColumns& x, const Columns& y) {
  check("apply", extents, x);
  check("apply", extents, y);
  if (active_device() == Device::cuda) return cuda::apply(function, extents, x, y);
  const float* from = x.values.floats().data();
  float* to = y.values.floats().data();
  for_rows(extents, [&](std::int64_t matrix, std::int64_t row, std::int64_t count) {
    dispatch_isa([&]<Isa isa>() {
      for (std::int64_t r = row; r < row + count; ++r) {
        elementary_isa<isa>(function, from + offset(x, matrix, r), to + offset(y, matrix, r),
                            static_cast<std::size_t>(extents.columns));
      }
    });
  });
}

void copy_columns(const ColumnExtents& extents, const ConstColumns& x, const Columns& y) {
  check("copy_columns", extents, x);
  check("copy_columns", extents, y);
  if (active_device() == Device::cuda) return cuda::copy_columns(extents, x, y);
  const bool whole = is_contiguous(extents, x) && is_contiguous(extents, y);
  const float* all_from = x.values.floats().data();
  float* all_to = y.values.floats().data();
  for_rows(extents, [&](std::int64_t matrix, std::int64_t row, std::int64_t count) {
    const float* from = all_from + offset(x, matrix, row);
    float* to = all_to + offset(y, matrix, row);
    const std::size_t bytes = static_cast<std::size_t>(extents.columns) * sizeof(float);
    if (whole) {
      std::memcpy(to, from, static_cast<std::size_t>(count) * bytes);
      return;
    }
    for (std::int64_t r = 0; r < count; ++r) std::memcpy(to + r * y.row, from + r * x.row, bytes);
  });
}

}  // namespace halfscope
