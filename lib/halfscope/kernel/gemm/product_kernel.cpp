// Splits matrix products into pieces and dispatches each to the loop of its model.
#include <halfscope/kernel/gemm/detail/product_kernel.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <halfscope/arithmetic/detail/fused_step.hpp>
#include <halfscope/core/parallel.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/gemm/detail/gemm_tensor_core_simd.hpp>

namespace halfscope {
namespace {

/// Rows and columns of a piece are multiples of every kernel's tile.
constexpr std::int64_t rows_per_tile = 24, columns_per_tile = 64;
/// A product of some ten microseconds is not split.
constexpr std::int64_t smallest_product = std::int64_t{1} << 20;
/// As many pieces of all products together as keep threads level.
constexpr std::int64_t level_pieces = 16;

RowRange part_of_tiles(std::int64_t count, std::int64_t pieces, std::int64_t tile, std::int64_t piece) {
  const std::int64_t tiles = (count + tile - 1) / tile;
  return {tiles * piece / pieces * tile, std::min(count, tiles * (piece + 1) / pieces * tile)};
}

bool is_whole(const ProductExtents& e) {
  return e.rows * e.depth * e.columns < smallest_product;
}

/// Whether the products alone keep the threads level.
bool is_level(const ProductExtents& e) {
  return thread_count() == 1 || e.products >= level_pieces;
}

/// Rows of a that stay in the second-level cache share what is copied of b; where that makes too few pieces
/// to keep threads level, first columns are split, then smaller pieces are made.
ProductSplit split_of(const ProductExtents& e) {
  constexpr std::int64_t most_row_pieces = 64, rows_per_piece = 20 * rows_per_tile;
  const std::int64_t wanted = is_level(e) ? 1 : (level_pieces + e.products - 1) / e.products;
  ProductSplit split{e.rows, e.columns};
  if (is_whole(e)) return split;
  const std::int64_t row_tiles = (e.rows + rows_per_tile - 1) / rows_per_tile;
  split.row_pieces = std::clamp<std::int64_t>(e.rows / rows_per_piece, 1, most_row_pieces);
  split.column_pieces = std::clamp<std::int64_t>(e.columns / columns_per_tile, 1,
                                                 (wanted + split.row_pieces - 1) / split.row_pieces);
  const std::int64_t missing = (wanted + split.column_pieces - 1) / split.column_pieces;
  split.row_pieces = std::max(split.row_pieces, std::min(row_tiles, missing));
  return split;
}

/// Tensor cores' kernels pack a's rows and b's columns for every piece: columns are split only where there
/// are few rows, and level threads have fewer pieces.
ProductSplit tensor_core_split_of(const ProductExtents& e) {
  constexpr std::int64_t many_row_tiles = 16;
  const std::int64_t tiles_per_piece = is_level(e) ? 8 : 4, fewest = is_level(e) ? 1 : 4;
  ProductSplit split{e.rows, e.columns};
  if (is_whole(e)) return split;
  const std::int64_t row_tiles = e.rows / rows_per_tile, column_tiles = e.columns / columns_per_tile;
  const bool splits_rows = row_tiles >= many_row_tiles || e.rows >= e.columns;
  const std::int64_t tiles = splits_rows ? row_tiles : column_tiles;
  std::int64_t& pieces = splits_rows ? split.row_pieces : split.column_pieces;
  pieces = std::max<std::int64_t>({1, tiles / tiles_per_piece, std::min(tiles, fewest)});
  return split;
}

}  // namespace

OutputRange ProductSplit::piece(std::int64_t index) const {
  const RowRange columns = part_of_tiles(column_count, column_pieces, columns_per_tile, index / row_pieces);
  return {part_of_tiles(row_count, row_pieces, rows_per_tile, index % row_pieces), columns.first,
          columns.last};
}

ProductKernel::ProductKernel(const AccumulateModel& model) : model_(model) {
  check_product_model(model);
  if (model.order == AccumulateOrder::cublas) {
    throw InvalidArgument("gemm: " + to_string(model) +
                          " is the order of a GPU's library; on the CPU choose an order that has a name");
  }
  if (model.order == AccumulateOrder::tensor_core) {
    step_ = product_step(model);
  } else if (model.order == AccumulateOrder::matrix_core) {
    matrix_step_ = matrix_core_step(model.matrix_core, model.format);
  }
}

ProductSplit ProductKernel::split(const ProductExtents& extents) const {
  return !step_ && !matrix_step_ ? split_of(extents) : tensor_core_split_of(extents);
}

/// Element by element, as the definition says; columns are gathered and rounded a few at a time.
void ProductKernel::run_defined(const GatherMatrix& a, const RightMatrix& b, float* c,
                                const OutputRange& range) const noexcept {
  constexpr std::int64_t columns_at_a_time = 64;
  const std::size_t depth = a.column.size();
  const Quantizer operands{.format = model_.format};
  std::vector<float> row(depth), columns(depth * columns_at_a_time);
  for (std::int64_t n = range.first_column; n < range.last_column; n += columns_at_a_time) {
    const std::int64_t width = std::min(columns_at_a_time, range.last_column - n);
    for (std::size_t k = 0; k < depth; ++k) {
      const float* const from = b.data + static_cast<std::int64_t>(k) * b.row_stride;
      for (std::int64_t i = 0; i < width; ++i)
        columns[static_cast<std::size_t>(i) * depth + k] = round(from[(n + i) * b.column_stride], operands);
    }
    for (std::int64_t m = range.rows.first; m < range.rows.last; ++m) {
      const std::int64_t start = a.row[static_cast<std::size_t>(m)];
      for (std::size_t k = 0; k < depth; ++k) row[k] = round(a.data.floats()[start + a.column[k]], operands);
      for (std::int64_t i = 0; i < width; ++i) {
        const std::span<const float> column(columns.data() + static_cast<std::size_t>(i) * depth, depth);
        c[m * b.columns + n + i] =
            matrix_step_ ? dot(row, column, 0, *matrix_step_) : dot(row, column, 0, *step_);
      }
    }
  }
}

void ProductKernel::run(const GatherMatrix& a, const RightMatrix& b, float* c,
                        const OutputRange& range) const noexcept {
  if (step_ && model_.chunk > 0) return run_promoted(a, b, c, range);
  run_whole(a, b, c, range);
}

/// The sums of each run of terms are a product of their own, which is added to c.
void ProductKernel::run_promoted(const GatherMatrix& a, const RightMatrix& b, float* c,
                                 const OutputRange& range) const noexcept {
  const std::int64_t depth = std::ssize(a.column), width = range.last_column - range.first_column;
  const std::int64_t rows = range.rows.last - range.rows.first;
  std::vector<float> partial(static_cast<std::size_t>(rows * width));
  GatherMatrix left = a;
  left.row = a.row.subspan(static_cast<std::size_t>(range.rows.first), static_cast<std::size_t>(rows));
  for (std::int64_t k = 0; k < depth; k += model_.chunk) {
    const std::int64_t terms = std::min<std::int64_t>(model_.chunk, depth - k);
    left.column = a.column.subspan(static_cast<std::size_t>(k), static_cast<std::size_t>(terms));
    const RightMatrix right{b.data + k * b.row_stride + range.first_column * b.column_stride, width,
                            b.row_stride, b.column_stride};
    run_whole(left, right, partial.data(), {{0, rows}, 0, width});
    for (std::int64_t m = 0; m < rows; ++m) {
      float* const total = c + (range.rows.first + m) * b.columns + range.first_column;
      const float* const sum = partial.data() + m * width;
      for (std::int64_t n = 0; n < width; ++n) {
        const float added = k == 0 ? sum[n] : total[n] + sum[n];
        total[n] = std::isnan(added) ? detail::canonical_nan(fp32) : added;
      }
    }
  }
}

void ProductKernel::run_whole(const GatherMatrix& a, const RightMatrix& b, float* c,
                              const OutputRange& range) const noexcept {
  if (matrix_step_ || (step_ && !has_tensor_core_lanes(*step_))) return run_defined(a, b, c, range);
  dispatch_isa([&]<Isa isa>() {
    if (!step_) return gemm_range_isa<isa>(a, b, c, range, model_);
    gemm_tensor_core_range_isa<isa>(a, b, c, range, *step_);
  });
}

}  // namespace halfscope
