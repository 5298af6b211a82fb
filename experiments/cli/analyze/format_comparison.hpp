// Several formats over the same tensors: sums of each, and the cheapest one whose error stays within a limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/cli/analyze/analyze.hpp"

namespace halfscope {

/// "5%" or "0.05", the norm of the error over that of the tensor; "26dB", signal over noise. Throws
/// InvalidArgument.
[[nodiscard]] ErrorLimit parse_error_limit(std::string_view text);

/// A format over all tensors.
struct FormatSum {
  std::string name{};
  BlockCounts counts{};
  std::int64_t bits = 0;                        ///< bits of elements and scales
  double worst_error = 0;                       ///< relative_error of the worst tensor
  const AnalyzedTensor* worst = nullptr;        ///< nothing without tensors
  std::vector<const AnalyzedTensor*> padded{};  ///< tensors with blocks that zeros fill up
  bool fits = false;                            ///< no tensor is beyond the limit

  [[nodiscard]] double bits_per_element() const {
    return counts.elements == 0 ? 0 : static_cast<double>(bits) / static_cast<double>(counts.elements);
  }
};

struct FormatComparison {
  std::vector<FormatSum> formats{};       ///< in the order of the request
  std::optional<std::size_t> cheapest{};  ///< the fitting one of fewest bits, then of least error
};

[[nodiscard]] FormatComparison compare_formats(const Analysis& analysis);

/// Index of the cheapest format that fits, or of the one with the least error where none does.
[[nodiscard]] std::size_t best_format(const FormatComparison& comparison);

/// Whether blocks of `format` end beyond the last row or column of `matrix`.
[[nodiscard]] bool is_padded(const TensorFormat& format, const MatrixShape& matrix);

/// The tensors by their largest error, cut to `top` of them; in the order of the files where there are no
/// more.
[[nodiscard]] std::vector<const AnalyzedTensor*> worst_tensors(const Analysis& analysis, std::size_t top);

}  // namespace halfscope
