// The loops of matrix products, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/detail/dispatch.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>

namespace halfscope {

struct RowRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// A rectangle of c.
struct OutputRange {
  RowRange rows;
  std::int64_t first_column = 0;
  std::int64_t last_column = 0;
};

/// The right factor of one product: element (k, n) is data[k * row_stride + n * column_stride].
struct RightMatrix {
  const float* data;
  std::int64_t columns;
  std::int64_t row_stride;
  std::int64_t column_stride = 1;
};

/// Part of c = a b in one thread, sequential, fused or chunked; c is (rows, b.columns). Instantiated in a
/// translation unit per instruction set.
template <Isa isa>
void gemm_range_isa(const GatherMatrix& a, const RightMatrix& b, float* c, const OutputRange& range,
                    const AccumulateModel& model);

}  // namespace halfscope
