// Matrix product with a named order of accumulation.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/arithmetic/block_dot.hpp>
#include <halfscope/device/memory.hpp>
#include <halfscope/format/elements.hpp>
#include <halfscope/kernel/gemm/device_product.hpp>

namespace halfscope {

/// A matrix of (row.size(), column.size()) whose element (m, k) is data[row[m] + column[k]]. Plain and
/// transposed matrices and the patches of a convolution (im2col) are all of this form, so none of them is
/// ever copied. All of it is where the active device has its arrays, and may have 16 bits there.
struct GatherMatrix {
  ElementReader data{};
  std::span<const std::int32_t> row;
  std::span<const std::int32_t> column;
  /// Which way neighbours lie in memory: along the columns of a plain matrix, the rows of a transposed one.
  MatrixLayout layout = MatrixLayout::row_major;
  std::int64_t stride =
      0;  ///< from one stored row to the next, which are contiguous; 0: patches, they are not
};

/// 0, stride, 2 stride, ...: the offsets of a plain matrix's rows or columns, on the active device. Throws
/// InvalidArgument where the last of them does not fit 32 bits.
[[nodiscard]] Memory<std::int32_t> strided_offsets(std::int64_t count, std::int64_t stride);

/// Row-major, contiguous: (rows, columns).
struct DenseMatrix {
  ElementReader data{};
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// c = a b, with c row-major (a.row.size(), b.columns). Each element equals `accumulate_products` of its row
/// and column, bit for bit; threads split the elements. Throws InvalidArgument where the shapes disagree or
/// where there is no product for `model` (check_product_model). For 16-bit numbers of the model's own format,
/// the model's tensor core is that of the GPU at hand where it can be.
void gemm(const GatherMatrix& a, const DenseMatrix& b, std::span<float> c, const AccumulateModel& model);

/// Rows in blocks along their columns: a code of `element` for each element, row by row, and one of a unit's
/// scale format for each block of a row, of which the last may be short.
struct BlockMatrix {
  FloatFormat element;
  std::int64_t rows = 0, columns = 0;
  std::span<const std::uint8_t> elements;
  std::span<const std::uint32_t> scales;

  /// Row i, in blocks of so many elements.
  [[nodiscard]] BlockOperand row(std::int64_t i, int block) const {
    const auto at = static_cast<std::size_t>(i), width = static_cast<std::size_t>(columns);
    const auto blocks = static_cast<std::size_t>((columns + block - 1) / block);
    return {element, elements.subspan(at * width, width), scales.subspan(at * blocks, blocks)};
  }
};

/// c = a b^T on the CPU as a block-scaled tensor core computes it, with c row-major (a.rows, b.rows). Each
/// element equals `block_dot` of its rows from +0 on, bit for bit; the tensors' own scales are not in it.
/// Threads split the elements. Throws InvalidArgument where sizes disagree, or where the unit does not take
/// the elements.
void gemm_blocks(const BlockMatrix& a, const BlockMatrix& b, std::span<float> c, const BlockScaledUnit& unit);

/// Offsets and products on the device, which the above call where that is the active one.
namespace cuda {
void fill_strided(std::int64_t stride, std::span<std::int32_t> offsets);
void gemm(const GatherMatrix& a, const DenseMatrix& b, std::span<float> c, const AccumulateModel& model);
}  // namespace cuda

/// Throws InvalidArgument unless `model` is sequential, fused, chunked, tensor_core, matrix_core or, on a
/// GPU, cublas.
void check_product_model(const AccumulateModel& model);

/// The same, and for a model that only the CPU computes, as `cpu_product_models` are.
void check_device_product_model(const AccumulateModel& model);

}  // namespace halfscope
