// Formats with their limits, and rules of scales, as `halfscope list` shows them.
#pragma once

#include <string>

#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {

/// Per format: name, summary; largest, smallest_normal and smallest number; overflow_limit, half way from the
/// largest number to what would come next, and whether nearest_even takes it beyond; the codes of NaN and of
/// infinity in base 16, null where there is none.
[[nodiscard]] Json format_entries();

/// Per rule: name as a block format is written, SCALE/RULE, and summary.
[[nodiscard]] Json scale_rule_entries();

/// "largest 448, above 464 NaN; normal 2^-6, smallest 2^-9; NaN 7f, no inf".
[[nodiscard]] std::string limits_line(const Json& entry);

}  // namespace halfscope
