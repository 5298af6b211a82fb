// Tiles of a matrix in blocks, with the scales of their blocks.
#include <halfscope/kernel/block/detail/tile.hpp>

#include <halfscope/kernel/block/detail/count.hpp>

namespace halfscope::detail {
namespace {

/// The largest magnitudes of a tile's blocks.
std::vector<BlockMaxima> tile_maxima(const TensorInBlocks& tensor, const BlockRange& range,
                                     std::size_t blocks) {
  std::vector<BlockMaxima> maxima(blocks);
  for (std::int64_t row = 0; row < range.rows; ++row) {
    const std::int64_t start = (range.first_row + row) * range.stride + range.first_column;
    add_to_maxima(
        tensor.values.subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(range.columns)),
        tensor.format.block.columns, maxima);
  }
  return maxima;
}

}  // namespace

TensorInBlocks::TensorInBlocks(std::span<const float> matrix, const MatrixShape& matrix_shape,
                               const BlockFormat& block_format)
    : values(matrix),
      shape(matrix_shape),
      format(block_format),
      amax(tensor_maximum(matrix, block_format)),
      factors(tensor_factors(amax, block_format)) {}

bool rounds_in_segments(const BlockFormat& format) {
  return format.element.rounding == Rounding::nearest_even && format.element.format.exponent_bits < 8;
}

TileGrid::TileGrid(const TensorInBlocks& tensor)
    : blocks(block_grid(tensor.shape, tensor.format.block)),
      blocks_per_tile(std::max<std::int64_t>(
          1, static_cast<std::int64_t>(segment_columns) / tensor.format.block.columns)),
      tiles_per_row((blocks.columns + blocks_per_tile - 1) / blocks_per_tile),
      count(blocks.rows * tiles_per_row) {}

ScaledTile scaled_tile(const TensorInBlocks& tensor, const TileGrid& grid, std::int64_t tile,
                       std::vector<BlockScale>& scales) {
  const BlockFormat& format = tensor.format;
  const std::int64_t column = tile % grid.tiles_per_row * grid.blocks_per_tile;
  const std::int64_t first_block = tile / grid.tiles_per_row * grid.blocks.columns + column;
  const auto blocks = static_cast<std::size_t>(std::min(grid.blocks_per_tile, grid.blocks.columns - column));
  BlockRange range = block_range(tensor.shape, format.block, first_block);
  range.columns = std::min(static_cast<std::int64_t>(blocks) * format.block.columns,
                           tensor.shape.columns - range.first_column);
  scales.resize(blocks);
  if (format.rule->choice == ScaleChoice::single) {
    const std::vector<BlockMaxima> maxima = tile_maxima(tensor, range, blocks);
    for (std::size_t i = 0; i < blocks; ++i) {
      scales[i] = format.rule
                      ->scales({.amax = from_bits(maxima[i].number),
                                .has_nan = maxima[i].any > infinity_bits,
                                .element = format.element.format,
                                .tensor = tensor.factors})
                      .first;
    }
  } else {
    for (std::size_t i = 0; i < blocks; ++i) {
      const BlockRange block =
          block_range(tensor.shape, format.block, first_block + static_cast<std::int64_t>(i));
      scales[i] = choose_scale(tensor.values, block, format, tensor.factors, tensor.amax);
    }
  }
  return {first_block, range, format.block.columns, scales};
}

}  // namespace halfscope::detail
