// The survey of a tensor of 8 or 16 bits from how often each of its codes occurs.
#pragma once

#include <halfscope/format/stored_type.hpp>
#include <halfscope/kernel/histogram/code_counts.hpp>
#include <halfscope/stats/tensor_survey.hpp>

namespace halfscope {

/// Whether elements of `type` have few enough codes to count them one by one.
[[nodiscard]] constexpr bool has_few_codes(StoredType type) {
  return bytes_per_element(type) <= 2;
}

/// What SurveyPass finds in a tensor of those elements. Counts and energy are the same to the bit; the cosine
/// is, too, for elements in any order, and differs from that of a pass by the rounding of its sums.
[[nodiscard]] TensorSurvey survey_codes(const CodeCounts& counts, StoredType type, const FloatFormat& format);

}  // namespace halfscope
