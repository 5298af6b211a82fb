// A step's first overflow as it stands in metrics.jsonl and summary.json, and in words.
#pragma once

#include <string>

#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/stats/tracker.hpp>

namespace halfscope {

/// {pass, cause, tensor, role, elements, nonfinite, max_abs, before: [{tensor, role, elements, nonfinite,
/// max_abs}]}; `role` is "reduction" where a reduction overflowed. Null where nothing did.
[[nodiscard]] Json overflow_json(const StepObservations& seen);

/// "step 3: ... overflowed first, in the backward pass: ..." of such a record.
[[nodiscard]] std::string overflow_in_words(std::int64_t step, const Json& overflow);

}  // namespace halfscope
