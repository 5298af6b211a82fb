// Matrix product with a named order of accumulation.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/arithmetic/accumulate.hpp>
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

/// The same on the device, which the above call where that is the active one.
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
