// The summary of a tensor of 8 or 16 bits from how often each of its codes occurs.
#pragma once

#include <halfscope/core/dtype.hpp>
#include <halfscope/kernel/histogram/code_counts.hpp>
#include <halfscope/stats/tensor_summary.hpp>

namespace halfscope {

/// Whether elements of `type` have few enough codes to count them one by one.
[[nodiscard]] constexpr bool has_few_codes(DType type) {
  return bytes_per_element(type) <= 2;
}

/// What SummaryPass finds in a tensor of those elements. Counts and energy are the same to the bit; the
/// cosine is, too, for elements in any order, and differs from that of a pass by the rounding of its sums.
[[nodiscard]] TensorSummary summarise_codes(const CodeCounts& counts, DType type, const FloatFormat& format);

}  // namespace halfscope
