// Several formats over the same tensors: sums of each, and the cheapest one whose error stays within a limit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <halfscope/format/tensor_format.hpp>
#include <halfscope/stats/block_counts.hpp>

namespace halfscope {

/// A tensor's counts under each of the compared formats.
struct ComparedTensor {
  std::string name;
  MatrixShape matrix{};                     ///< rows run along the axis of the blocks
  std::span<const FormatCounts> formats{};  ///< in the order of the formats
  /// A norm's weight or a bias, of one axis: no policy quantizes it, and it is left out of the choice where
  /// another tensor is not.
  bool is_vector = false;
};

/// The largest error that a format may make in any tensor, and in its rows: the norm of a tensor does not
/// tell that an outlier sets the scale of all, and that all else becomes zero.
struct ErrorLimit {
  std::string words;  ///< as sentences call it: "--max-error 5%"
  double share = 0;   ///< norm of the error over that of the tensor, and of its median row

  [[nodiscard]] double of_worst_row() const { return 4 * share; }
  /// A tenth of the columns may err by more.
  [[nodiscard]] double of_worst_columns() const { return 4 * share; }
  /// Share of nonzero values that become zero since all rows have one scale.
  [[nodiscard]] double of_flushed() const { return 2 * share; }
};

/// A format over all tensors.
struct FormatSum {
  std::string name{};
  BlockCounts counts{};
  std::int64_t bits = 0;               ///< bits of elements and scales
  double worst_error = 0;              ///< the larger of a tensor's error and its median row's, of any tensor
  std::optional<std::size_t> worst{};  ///< its index; nothing without tensors
  double worst_row_error = 0;          ///< largest error of a row of any tensor
  double most_flushed = 0;             ///< flushed_share of any tensor
  double excess = 0;                   ///< the largest of all errors over its limit, of any tensor
  /// The first tensor whose error is within the limit, and which has a row, columns or a share of flushed
  /// values that are not.
  std::optional<std::size_t> hidden{};
  std::vector<std::size_t> padded{};  ///< tensors with blocks that zeros fill up
  bool fits = false;                  ///< nothing is beyond the limit

  [[nodiscard]] double bits_per_element() const {
    return counts.elements == 0 ? 0 : static_cast<double>(bits) / static_cast<double>(counts.elements);
  }
};

struct FormatComparison {
  std::vector<ComparedTensor> tensors;
  ErrorLimit limit;
  std::vector<FormatSum> formats{};       ///< in the order of the request
  std::optional<std::size_t> cheapest{};  ///< the fitting one of fewest bits, then of least error
  std::size_t left_out = 0;               ///< tensors of one axis, which are in no sum

  /// Index of the cheapest format that fits, or of the one with the least excess where none does.
  [[nodiscard]] std::size_t best() const;
};

/// Sums of `formats` over the tensors, whose counts must outlive the comparison. Throws InvalidArgument
/// without a format, and for a tensor that was counted for another number of them.
[[nodiscard]] FormatComparison compare_formats(std::span<const TensorFormat> formats,
                                               std::vector<ComparedTensor> tensors, ErrorLimit limit);

/// Whether blocks of `format` end beyond the last row or column of `matrix`.
[[nodiscard]] bool is_padded(const TensorFormat& format, const MatrixShape& matrix);

/// Recommendation in two sentences.
struct FormatAdvice {
  std::string choice;  ///< "Use mxfp8_e4m3: 8.25 bits per element."
  std::string reason;
};
/// The cheapest format within the limit, or the one that comes closest, and why.
[[nodiscard]] FormatAdvice format_advice(const FormatComparison& comparison);
/// The same on one line, the format first.
[[nodiscard]] std::string cheapest_line(const FormatComparison& comparison);

/// "29.4", "exact" without error, "lost" where finite values became NaN.
[[nodiscard]] std::string decibel_text(double relative_error);

}  // namespace halfscope
