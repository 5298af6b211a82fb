// Which scale an element of a quantized tensor has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace halfscope {

/// Blocks of rows and columns; axes before the last two have a scale for each index.
struct BlockLayout {
  std::int64_t rows = 1, columns = 1;              ///< the tensor's, with the axes before the last multiplied
  std::int64_t block_rows = 1, block_columns = 1;  ///< a block's
  std::int64_t row_extent = 1;                     ///< extent of the last axis but one
  std::int64_t scale_rows = 1, scale_columns = 1;  ///< extents of the last two axes of the scales

  /// Index of the scale of element (row, column), in row-major order.
  [[nodiscard]] std::int64_t scale_of(std::int64_t row, std::int64_t column) const {
    const std::int64_t block_row = row / row_extent * scale_rows + row % row_extent / block_rows;
    return block_row * scale_columns + column / block_columns;
  }
};

/// Whether blocks of `rows` x `columns` of the last two axes of `shape` have scales of the shape `scales`.
[[nodiscard]] bool blocks_fit(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& scales,
                              std::int64_t rows, std::int64_t columns);

/// The blocks of a tensor of `shape`, whose scales have the shape `scales`; nothing where the two do not fit.
[[nodiscard]] std::optional<BlockLayout> fit_blocks(const std::vector<std::int64_t>& shape,
                                                    std::vector<std::int64_t> scales);

}  // namespace halfscope
