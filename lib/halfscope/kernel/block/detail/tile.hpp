// Tiles of a matrix in blocks: blocks beside each other, their scales, and their rows in segments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/block/detail/block_element.hpp>
#include <halfscope/kernel/block/detail/segment.hpp>

namespace halfscope::detail {

/// A matrix with what its format makes of the whole of it.
struct TensorInBlocks {
  TensorInBlocks(std::span<const float> matrix, const MatrixShape& matrix_shape,
                 const BlockFormat& block_format);

  std::span<const float> values;
  MatrixShape shape;
  const BlockFormat& format;
  float amax;  ///< as tensor_maximum
  TensorFactors factors;
};

/// Whether elements are rounded to the nearest, in a format that the segments' loops take.
[[nodiscard]] bool rounds_in_segments(const BlockFormat& format);

/// The blocks of a tile from left to right, and their scales.
struct ScaledTile {
  std::int64_t first_block = 0;
  BlockRange range{};  ///< all of their elements
  std::int64_t block_columns = 1;
  std::span<const BlockScale> scales;

  /// Calls body(index of the first element, count, scales) for each row, in pieces of at most
  /// segment_columns.
  template <typename Body>
  void for_each_segment(const Body& body) const {
    SegmentScales columns;
    const auto width = static_cast<std::size_t>(range.columns);
    for (std::size_t column = 0; column < width; column += segment_columns) {
      const std::size_t count = std::min(segment_columns, width - column);
      spread_scales(scales, static_cast<std::size_t>(block_columns), column, count, columns);
      for (std::int64_t row = 0; row < range.rows; ++row) {
        const std::int64_t start = (range.first_row + row) * range.stride + range.first_column;
        body(start + static_cast<std::int64_t>(column), count, columns);
      }
    }
  }
};

/// Tiles of a tensor, numbered row by row.
struct TileGrid {
  explicit TileGrid(const TensorInBlocks& tensor);

  MatrixShape blocks;            ///< the matrix in blocks
  std::int64_t blocks_per_tile;  ///< a segment's width, or one block
  std::int64_t tiles_per_row, count;
};

/// The scales of a tile's blocks, and its range.
[[nodiscard]] ScaledTile scaled_tile(const TensorInBlocks& tensor, const TileGrid& grid, std::int64_t tile,
                                     std::vector<BlockScale>& scales);

/// Calls body(tile) for all tiles, split over the threads.
template <typename Body>
void visit_tiles(const TensorInBlocks& tensor, const Body& body) {
  const TileGrid grid(tensor);
  constexpr std::int64_t elements_per_range = 4096;
  const std::int64_t elements = grid.blocks_per_tile * tensor.format.block.size();
  const std::int64_t grain = std::max<std::int64_t>(1, elements_per_range / elements);
  parallel_for_ranges(grid.count, grain, [&](std::int64_t first, std::int64_t count) {
    std::vector<BlockScale> scales;
    for (std::int64_t i = first; i < first + count; ++i) body(scaled_tile(tensor, grid, i, scales));
  });
}

}  // namespace halfscope::detail
