// Tiles of a matrix in blocks: blocks beside each other, their scales, and their rows in segments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/block/detail/block_element.hpp>
#include <halfscope/kernel/block/detail/block_scaler.hpp>
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
  bool is_ordinary = false;  ///< as an OrdinaryRow

  /// Index of the first element of a row.
  [[nodiscard]] std::size_t start_of(std::int64_t row) const {
    return static_cast<std::size_t>((range.first_row + row) * range.stride + range.first_column);
  }
  /// Calls body(index of the first element, count, scales) for each row, in pieces of at most
  /// segment_columns.
  template <typename Body>
  void for_each_segment(const Body& body) const {
    SegmentScales columns;
    columns.are_ordinary = is_ordinary;
    const auto width = static_cast<std::size_t>(range.columns);
    for (std::size_t column = 0; column < width; column += segment_columns) {
      const std::size_t count = std::min(segment_columns, width - column);
      spread_scales(scales, static_cast<std::size_t>(block_columns), column, count, columns);
      for (std::int64_t row = 0; row < range.rows; ++row) body(start_of(row) + column, count, columns);
    }
  }
};

/// Writes the values of a tile's elements to their places in `out`, a whole matrix as `values`.
void write_tile_values(std::span<const float> values, const ScaledTile& tile, const SegmentRounding& rounding,
                       float* out);
/// The same with codes.
void write_tile_codes(std::span<const float> values, const ScaledTile& tile, const SegmentRounding& rounding,
                      std::uint8_t* codes);

/// Tiles of a tensor, numbered row by row.
struct TileGrid {
  explicit TileGrid(const TensorInBlocks& tensor);

  MatrixShape blocks;            ///< the matrix in blocks
  std::int64_t blocks_per_tile;  ///< a segment's width, or one block
  std::int64_t tiles_per_row, count;
};

/// Finds the scales of tiles, one after another, and keeps those of the last one.
class TileScaler {
 public:
  TileScaler(const TensorInBlocks& tensor, const TileGrid& grid, const BlockScaler& scaler)
      : tensor_(tensor), grid_(grid), scaler_(scaler) {}

  [[nodiscard]] ScaledTile scale(std::int64_t tile);

 private:
  void choose_scales(std::int64_t first_block);

  const TensorInBlocks& tensor_;
  const TileGrid& grid_;
  const BlockScaler& scaler_;
  std::vector<BlockMaxima> maxima_{};
  std::vector<BlockScale> scales_{};
};

/// Calls body(scaler, first, count) for ranges of consecutive tiles, split over the threads.
template <typename Body>
void visit_tile_ranges(const TensorInBlocks& tensor, const Body& body) {
  const TileGrid grid(tensor);
  const BlockScaler scaler(tensor.format, tensor.factors);
  constexpr std::int64_t elements_per_range = 16384;
  const std::int64_t elements = grid.blocks_per_tile * tensor.format.block.size();
  const std::int64_t grain = std::max<std::int64_t>(1, elements_per_range / elements);
  parallel_for_ranges(grid.count, grain, [&](std::int64_t first, std::int64_t count) {
    TileScaler tiles(tensor, grid, scaler);
    body(tiles, first, count);
  });
}

/// Calls body(tile) for all tiles, split over the threads.
template <typename Body>
void visit_tiles(const TensorInBlocks& tensor, const Body& body) {
  visit_tile_ranges(tensor, [&](TileScaler& tiles, std::int64_t first, std::int64_t count) {
    for (std::int64_t i = first; i < first + count; ++i) body(tiles.scale(i));
  });
}

}  // namespace halfscope::detail
