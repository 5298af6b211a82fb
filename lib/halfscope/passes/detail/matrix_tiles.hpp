// A matrix in tiles of whole blocks, and the tensor of a file as one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <halfscope/format/tensor_format.hpp>
#include <halfscope/io/tensor_file.hpp>
#include <halfscope/kernel/block/quantise.hpp>
#include <halfscope/stats/detail/block_counter.hpp>

namespace halfscope {

struct MatrixTile {
  std::int64_t row = 0, column = 0;
  MatrixShape shape{};
};

/// Rows and columns that every tile is a multiple of, but at the ends of the matrix.
[[nodiscard]] inline MatrixShape tile_unit(std::span<const TensorFormat> formats) {
  constexpr std::int64_t beyond_all = std::int64_t{1} << 40;
  MatrixShape unit{1, counted_segment};
  for (const TensorFormat& format : formats) {
    const auto* block = std::get_if<BlockFormat>(&format);
    if (block == nullptr) continue;
    unit.rows = std::min(beyond_all, std::lcm(unit.rows, std::int64_t{block->block.rows}));
    unit.columns = std::min(beyond_all, std::lcm(unit.columns, std::int64_t{block->block.columns}));
  }
  return unit;
}

/// Tiles of about `tile_elements`, row by row: whole rows where one unit of them is not more.
[[nodiscard]] inline std::vector<MatrixTile> matrix_tiles(const MatrixShape& shape, const MatrixShape& unit) {
  constexpr std::int64_t tile_elements = std::int64_t{1} << 19;  // stays in a cache, and reads are long
  const auto units = [](std::int64_t size) { return std::max<std::int64_t>(1, tile_elements / size); };
  const std::int64_t columns = std::min(shape.columns, units(unit.rows * unit.columns) * unit.columns);
  const std::int64_t rows = units(std::max<std::int64_t>(1, columns) * unit.rows) * unit.rows;
  std::vector<MatrixTile> tiles;
  for (std::int64_t row = 0; row < shape.rows; row += rows) {
    for (std::int64_t column = 0; column < shape.columns; column += columns)
      tiles.push_back(
          {row, column, {std::min(rows, shape.rows - row), std::min(columns, shape.columns - column)}});
  }
  return tiles;
}

/// Calls take(elements) for pieces of a tile of tensor `index`, whose elements come in the order of the
/// matrix.
template <typename Take>
void read_pieces(const TensorFile& file, std::size_t index, std::int64_t columns, const MatrixTile& tile,
                 const Take& take) {
  if (tile.shape.columns == columns)
    return file.read(index, tile.row * columns, tile.shape.rows * columns, take);
  for (std::int64_t row = 0; row < tile.shape.rows; ++row)
    file.read(index, (tile.row + row) * columns + tile.column, tile.shape.columns, take);
}

/// Writes a tile of tensor `index`, whose elements come in the order of the matrix, to `values`.
inline void read_tile(const TensorFile& file, std::size_t index, std::int64_t columns, const MatrixTile& tile,
                      std::span<float> values) {
  if (tile.shape.columns == columns) return file.read_into(index, tile.row * columns, values);
  const auto width = static_cast<std::size_t>(tile.shape.columns);
  for (std::int64_t row = 0; row < tile.shape.rows; ++row) {
    const std::span<float> to = values.subspan(static_cast<std::size_t>(row) * width, width);
    file.read_into(index, (tile.row + row) * columns + tile.column, to);
  }
}

}  // namespace halfscope
