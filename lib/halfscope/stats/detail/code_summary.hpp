// The summary of a tensor of 8 or 16 bits from how often each of its codes occurs.
#pragma once

#include <halfscope/core/dtype.hpp>
#include <halfscope/kernel/histogram/code_counts.hpp>
#include <halfscope/stats/tensor_summary.hpp>

namespace halfscope {

/// [code]: the float that `widen` makes of each code of a type of one or two bytes, in the order of
/// `CodeCounts::totals`.
[[nodiscard]] std::vector<float> numbers_of_codes(DType type);

/// The summary that SummaryPass makes of a tensor of those elements. Counts and energy are the same to the
/// bit; the cosine is, too, for elements in any order, and differs from that of a pass by the rounding of its
/// sums.
[[nodiscard]] TensorSummary summarise_codes(const CodeCounts& counts, DType type, const FloatFormat& format);

}  // namespace halfscope
