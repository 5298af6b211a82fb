// Products of many matrices of one shape at a time, with a named order of accumulation.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/arithmetic/accumulate.hpp>

namespace halfscope {

/// Matrices of (rows, columns): element (i, j) of matrix n is
/// data[start[n] + i * row_stride + j * column_stride]. Strides are 0 or more. With one of them 1, as plain
/// and transposed matrices have it, products are fastest. A matrix that stands in several products is there
/// once.
struct StridedMatrices {
  const float* data = nullptr;
  std::span<const std::int64_t> start{};
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
};

/// c[n] = a[n] b[n], with c (start.size(), a.rows, b.columns), contiguous, in CPU memory as a and b are. Each
/// element equals `accumulate_products` of its row and column, bit for bit; threads split the products, and
/// of large ones the elements. Neither a nor b is copied as a whole. Throws InvalidArgument where the shapes
/// disagree, a stride is negative, a.columns * a.column_stride is 2^31 or more, the active device is a GPU,
/// or there is no product for `model` (check_product_model).
void gemm_batch(const StridedMatrices& a, const StridedMatrices& b, std::span<float> c,
                const AccumulateModel& model);

}  // namespace halfscope
