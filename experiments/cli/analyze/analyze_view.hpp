// Which of the tensors are shown, and in which order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/cli/analyze/analyze_findings.hpp"

namespace halfscope {

/// A user's view of the tensors; by default all in the order of the files.
struct ViewOptions {
  std::string sort;                ///< a key of `sort_key_names`; empty: the order of the files
  std::optional<std::size_t> top;  ///< at most so many
  std::vector<Threshold> only;     ///< only tensors that reach all of them
};

struct View {
  std::vector<const AnalyzedTensor*> tensors;
  std::size_t all = 0;       ///< tensors that were analysed
  std::size_t matching = 0;  ///< tensors that `only` takes
};

/// The names of the keys: shares and counts descend, names ascend.
[[nodiscard]] std::vector<std::string> sort_key_names();

/// Throws InvalidArgument for an unknown key.
[[nodiscard]] View view_of(const Analysis& analysis, const ViewOptions& options);

/// The key of the default table's choice: overflow and values that are not finite come first, then the shares
/// that are flushed and that are subnormal.
inline constexpr const char* worst_first = "worst";

}  // namespace halfscope
