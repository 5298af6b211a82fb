// A tensor as a matrix whose rows run along an axis, in a file or in memory, and the counts of formats over
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <halfscope/format/tensor_format.hpp>
#include <halfscope/kernel/block/detail/axis_last.hpp>
#include <halfscope/passes/detail/matrix_tiles.hpp>
#include <halfscope/stats/block_counts.hpp>
#include <halfscope/stats/detail/format_counter.hpp>

namespace halfscope {

/// A tensor as a matrix, read tile by tile from its file or from memory.
class TensorMatrix {
 public:
  /// Tensor `index` of `file`, which must outlive the matrix.
  TensorMatrix(const TensorFile& file, std::size_t index, std::int64_t axis);
  /// `values` row by row, which must outlive the matrix.
  TensorMatrix(std::span<const float> values, const MatrixShape& shape) : shape_(shape), in_memory_(values) {}
  TensorMatrix(const TensorMatrix&) = delete;
  TensorMatrix& operator=(const TensorMatrix&) = delete;

  [[nodiscard]] const MatrixShape& shape() const { return shape_; }
  /// Tiles of whole units; those of a matrix that is turned as it is read are larger.
  [[nodiscard]] std::vector<MatrixTile> tiles(const MatrixShape& unit) const;
  /// Tiles of whole rows, but where a row is beyond what is held of a matrix.
  [[nodiscard]] std::vector<MatrixTile> whole_rows() const;
  /// The elements of a tile; `buffer` holds them where they do not lie side by side in memory.
  [[nodiscard]] std::span<const float> tile(const MatrixTile& tile, std::vector<float>& buffer) const;
  /// The largest magnitude of as many elements as a tile has; those of all tiles are all elements.
  [[nodiscard]] TensorMaximum maximum(const MatrixTile& tile) const;

 private:
  [[nodiscard]] std::span<const float> in_memory(std::int64_t row, std::int64_t column,
                                                 std::int64_t count) const {
    return in_memory_.subspan(static_cast<std::size_t>(row * shape_.columns + column),
                              static_cast<std::size_t>(count));
  }

  /// Calls take(row) for the rows of a tile in memory.
  template <typename Take>
  void for_each_row(const MatrixTile& tile, const Take& take) const {
    for (std::int64_t row = tile.row; row < tile.row + tile.shape.rows; ++row)
      take(in_memory(row, tile.column, tile.shape.columns));
  }

  const TensorFile* file_ = nullptr;
  std::size_t index_ = 0;
  MatrixShape shape_{};
  std::optional<detail::AroundAxis> turned_{};  ///< the order in the file, where that is another
  std::unique_ptr<float[]> held_{};             ///< the matrix of a file that is read as a whole
  std::span<const float> in_memory_{};          ///< the matrix; empty where it is read from the file
};

/// Whether a tensor is read into memory as a whole: one that is compressed, or stored in another order than
/// that of its shape.
[[nodiscard]] bool is_held(const StoredTensor& tensor);

/// Counts what the formats do to a matrix on one thread. A matrix of one tile is read once.
[[nodiscard]] std::vector<FormatCounts> count_on_one_thread(const TensorMatrix& matrix,
                                                            std::span<const TensorFormat> formats,
                                                            ScaledExponents exponents);
/// The same counts by all threads: the largest magnitude, then the tiles.
[[nodiscard]] std::vector<FormatCounts> count_on_all_threads(const TensorMatrix& matrix,
                                                             std::span<const TensorFormat> formats,
                                                             ScaledExponents exponents);

}  // namespace halfscope
