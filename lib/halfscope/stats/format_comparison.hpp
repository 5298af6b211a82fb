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
};

/// The largest error that a format may make in any tensor.
struct ErrorLimit {
  std::string words;  ///< as sentences call it: "--max-error 5%"
  double share = 0;   ///< norm of the error over that of the tensor
};

/// A format over all tensors.
struct FormatSum {
  std::string name{};
  BlockCounts counts{};
  std::int64_t bits = 0;               ///< bits of elements and scales
  double worst_error = 0;              ///< relative_error of the worst tensor
  std::optional<std::size_t> worst{};  ///< its index; nothing without tensors
  std::vector<std::size_t> padded{};   ///< tensors with blocks that zeros fill up
  bool fits = false;                   ///< no tensor is beyond the limit

  [[nodiscard]] double bits_per_element() const {
    return counts.elements == 0 ? 0 : static_cast<double>(bits) / static_cast<double>(counts.elements);
  }
};

struct FormatComparison {
  std::vector<ComparedTensor> tensors;
  ErrorLimit limit;
  std::vector<FormatSum> formats{};       ///< in the order of the request
  std::optional<std::size_t> cheapest{};  ///< the fitting one of fewest bits, then of least error

  /// Index of the cheapest format that fits, or of the one with the least error where none does.
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
