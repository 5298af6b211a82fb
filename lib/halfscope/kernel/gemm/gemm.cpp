// Checks the shapes of a matrix product and splits its rows over the threads.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>

#include <halfscope/kernel/gemm/detail/gemm_tensor_core_simd.hpp>

namespace halfscope {
namespace {

/// Rows and columns of a piece are multiples of every kernel's tile.
constexpr std::int64_t rows_per_tile = 24, columns_per_tile = 64;
/// A product of some ten microseconds is not split.
constexpr std::int64_t smallest_product = std::int64_t{1} << 20;

/// The pieces of a product, whatever the number of threads.
struct Split {
  std::int64_t row_count, column_count, row_pieces, column_pieces;

  [[nodiscard]] RowRange rows(std::int64_t piece) const {
    return part(row_count, row_pieces, rows_per_tile, piece);
  }
  [[nodiscard]] RowRange columns(std::int64_t piece) const {
    return part(column_count, column_pieces, columns_per_tile, piece);
  }
  static RowRange part(std::int64_t count, std::int64_t pieces, std::int64_t tile, std::int64_t piece) {
    const std::int64_t tiles = (count + tile - 1) / tile;
    return {tiles * piece / pieces * tile, std::min(count, tiles * (piece + 1) / pieces * tile)};
  }
};

/// Rows of a that stay in the second-level cache share what is copied of b; where that makes too few pieces
/// to keep threads level, first columns are split, then smaller pieces are made. A product of some ten
/// microseconds is one piece.
Split split_of(std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  constexpr std::int64_t most_row_pieces = 64, rows_per_piece = 20 * rows_per_tile;
  const std::int64_t wanted = thread_count() == 1 ? 1 : 16;
  Split split{rows, columns, 1, 1};
  if (rows * depth * columns < smallest_product) return split;
  const std::int64_t row_tiles = (rows + rows_per_tile - 1) / rows_per_tile;
  split.row_pieces = std::clamp<std::int64_t>(rows / rows_per_piece, 1, most_row_pieces);
  split.column_pieces = std::clamp<std::int64_t>(columns / columns_per_tile, 1,
                                                 (wanted + split.row_pieces - 1) / split.row_pieces);
  const std::int64_t missing = (wanted + split.column_pieces - 1) / split.column_pieces;
  split.row_pieces = std::max(split.row_pieces, std::min(row_tiles, missing));
  return split;
}

/// Tensor cores' kernels pack a's rows and b's columns for every piece: columns are split only where there
/// are few rows, and one thread has fewer pieces.
Split tensor_core_split_of(std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  constexpr std::int64_t many_row_tiles = 16;
  const bool one_thread = thread_count() == 1;
  const std::int64_t tiles_per_piece = one_thread ? 8 : 4, fewest = one_thread ? 1 : 4;
  Split split{rows, columns, 1, 1};
  if (rows * depth * columns < smallest_product) return split;
  const std::int64_t row_tiles = rows / rows_per_tile, column_tiles = columns / columns_per_tile;
  const bool splits_rows = row_tiles >= many_row_tiles || rows >= columns;
  const std::int64_t tiles = splits_rows ? row_tiles : column_tiles;
  std::int64_t& pieces = splits_rows ? split.row_pieces : split.column_pieces;
  pieces = std::max<std::int64_t>({1, tiles / tiles_per_piece, std::min(tiles, fewest)});
  return split;
}

}  // namespace

Memory<std::int32_t> strided_offsets(std::int64_t count, std::int64_t stride) {
  if (count * stride > std::numeric_limits<std::int32_t>::max()) {
    throw InvalidArgument(
        fmt::format("a matrix of {} rows or columns, {} elements apart, is too large for one product; "
                    "use a smaller batch",
                    count, stride));
  }
  Memory<std::int32_t> offsets(static_cast<std::size_t>(count));
  if (active_device() == Device::cuda) {
    cuda::fill_strided(stride, offsets.values());
  } else {
    for (std::int64_t i = 0; i < count; ++i) offsets.data()[i] = static_cast<std::int32_t>(i * stride);
  }
  return offsets;
}

void check_product_model(const AccumulateModel& model) {
  if (model.order == AccumulateOrder::tensor_core) {
    (void)tensor_core_step(model.core, model.format, fp32);
    return;
  }
  if (model.order == AccumulateOrder::chunked && model.chunk < 1) {
    throw InvalidArgument("a matrix product's chunk holds at least one term");
  }
  if (model.order == AccumulateOrder::sequential || model.order == AccumulateOrder::chunked ||
      model.order == AccumulateOrder::cublas) {
    return;
  }
  if (model.order == AccumulateOrder::fused) return check_fused_format(model.format);
  throw InvalidArgument(
      "matrix products add up sequentially, fused, in chunks or as tensor cores do, not in " +
      to_string(model) + "; only sums of single terms take that");
}

void gemm(const GatherMatrix& a, const DenseMatrix& b, std::span<float> c, const AccumulateModel& model) {
  const auto rows = static_cast<std::int64_t>(a.row.size());
  const auto depth = static_cast<std::int64_t>(a.column.size());
  if (depth != b.rows || static_cast<std::int64_t>(c.size()) != rows * b.columns) {
    throw InvalidArgument(fmt::format("gemm: ({}, {}) times ({}, {}) does not give {} elements", rows, depth,
                                      b.rows, b.columns, c.size()));
  }
  check_product_model(model);
  if (active_device() == Device::cuda) return cuda::gemm(a, b, c, model);
  if (model.order == AccumulateOrder::cublas) {
    throw InvalidArgument("gemm: " + to_string(model) +
                          " is the order of a GPU's library; on the CPU choose an order that has a name");
  }
  (void)a.data.floats();
  (void)b.data.floats();
  if (depth == 0 || c.empty()) {  // the loops point into a, b and c
    std::ranges::fill(c, 0.0f);
    return;
  }
  const TensorCoreStep* step = model.order == AccumulateOrder::tensor_core
                                   ? &tensor_core_step(model.core, model.format, fp32)
                                   : nullptr;
  const Split split =
      step == nullptr ? split_of(rows, depth, b.columns) : tensor_core_split_of(rows, depth, b.columns);
  parallel_for(split.row_pieces * split.column_pieces, [&](std::int64_t piece) noexcept {
    const RowRange columns = split.columns(piece / split.row_pieces);
    const OutputRange range{split.rows(piece % split.row_pieces), columns.first, columns.last};
    dispatch_isa([&]<Isa isa>() {
      if (step == nullptr) return gemm_range_isa<isa>(a, b, c.data(), range, model);
      gemm_tensor_core_range_isa<isa>(a, b, c.data(), range, *step);
    });
  });
}

}  // namespace halfscope
