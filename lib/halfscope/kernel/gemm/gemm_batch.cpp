// Checks products of many matrices and splits them over the threads.
#include <halfscope/kernel/gemm/gemm_batch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/gemm/detail/product_kernel.hpp>

namespace halfscope {
namespace {

/// Rows of every product, by the offsets that these products share.
struct RowBlock {
  std::int64_t first, count;
  std::span<const std::int32_t> row, column;
};

/// Rows of a at a time: their offsets have 32 bits.
std::int64_t rows_at_a_time(const StridedMatrices& a) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  return std::clamp<std::int64_t>(most / std::max<std::int64_t>(1, a.row_stride), 1, a.rows);
}

void check_batch(const StridedMatrices& a, const StridedMatrices& b, std::size_t elements) {
  if (active_device() == Device::cuda)
    throw InvalidArgument("gemm_batch: products of many matrices are the CPU's; on a GPU call gemm for each");
  const auto products = static_cast<std::int64_t>(a.start.size());
  if (a.columns != b.rows || a.start.size() != b.start.size() ||
      static_cast<std::int64_t>(elements) != products * a.rows * b.columns) {
    throw InvalidArgument(
        fmt::format("gemm_batch: {} of ({}, {}) times {} of ({}, {}) do not give {} elements", products,
                    a.rows, a.columns, b.start.size(), b.rows, b.columns, elements));
  }
  if (std::min({a.row_stride, a.column_stride, b.row_stride, b.column_stride}) < 0)
    throw InvalidArgument("gemm_batch: a negative stride; give strides of 0 or more");
}

GatherMatrix left_of(const StridedMatrices& a, std::size_t product, const RowBlock& block) {
  const bool plain = a.column_stride == 1, transposed = !plain && a.row_stride == 1;
  return {.data = a.data + a.start[product] + block.first * a.row_stride,
          .row = block.row,
          .column = block.column,
          .layout = transposed ? MatrixLayout::transposed : MatrixLayout::row_major,
          .stride = plain        ? a.row_stride
                    : transposed ? a.column_stride
                                 : 0};
}

void multiply_rows(const StridedMatrices& a, const StridedMatrices& b, const RowBlock& block, float* c,
                   const ProductKernel& kernel) {
  const auto products = static_cast<std::int64_t>(a.start.size());
  const ProductSplit split = kernel.split({block.count, a.columns, b.columns, products});
  parallel_for(products * split.pieces(), [&](std::int64_t index) noexcept {
    const std::int64_t product = index / split.pieces();
    const auto n = static_cast<std::size_t>(product);
    const RightMatrix right{b.data + b.start[n], b.columns, b.row_stride, b.column_stride};
    kernel.run(left_of(a, n, block), right, c + (product * a.rows + block.first) * b.columns,
               split.piece(index % split.pieces()));
  });
}

}  // namespace

void gemm_batch(const StridedMatrices& a, const StridedMatrices& b, std::span<float> c,
                const AccumulateModel& model) {
  check_batch(a, b, c.size());
  const ProductKernel kernel(model);
  if (a.columns == 0 || c.empty()) {  // the loops point into a, b and c
    std::ranges::fill(c, 0.0f);
    return;
  }
  const std::int64_t most = rows_at_a_time(a);
  const Memory<std::int32_t> row = strided_offsets(most, most == 1 ? 0 : a.row_stride);
  const Memory<std::int32_t> column = strided_offsets(a.columns, a.column_stride);
  for (std::int64_t first = 0; first < a.rows; first += most) {
    const std::int64_t count = std::min(most, a.rows - first);
    multiply_rows(a, b, {first, count, row.values().first(static_cast<std::size_t>(count)), column.values()},
                  c.data(), kernel);
  }
}

}  // namespace halfscope
