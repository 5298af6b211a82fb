// Errors of the rows of a tensor that comes in tiles, and the element that sets a scale of all of them.
#pragma once

#include <span>
#include <vector>

#include <halfscope/passes/detail/tensor_matrix.hpp>
#include <halfscope/stats/block_counts.hpp>
#include <halfscope/stats/detail/format_counter.hpp>

namespace halfscope {

/// Takes the sums of tiles in their order, row by row, and keeps an error for each row; of many rows for
/// every k-th, so that memory stays bounded, and for the worst of all.
class RowErrorList {
 public:
  RowErrorList(const MatrixShape& matrix, std::size_t formats);

  void add(const MatrixTile& tile, const FormatCounter::SumsByFormat& sums);
  /// Writes the errors into the counts of each format.
  void finish(std::vector<FormatCounts>& formats);

 private:
  void add_row(std::size_t format, std::int64_t row, const RowSums& sums);

  MatrixShape matrix_;
  std::int64_t step_ = 1;               ///< rows of which one is kept
  FormatCounter::SumsByFormat band_{};  ///< rows of the tiles since column 0
  std::vector<RowErrors> found_;
  std::vector<std::vector<float>> errors_;
};

/// Fills in FormatCounts::shared of formats with one scale that flush more than one value in a hundred: goes
/// over the matrix once more.
void find_shared_scales(const TensorMatrix& matrix, std::span<const TensorFormat> formats,
                        std::vector<FormatCounts>& counts);

}  // namespace halfscope
