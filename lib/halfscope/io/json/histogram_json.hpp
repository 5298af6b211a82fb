// Histograms as JSON: the members of a line of histograms.jsonl, and of a trace's gradients.
#pragma once

#include <string>

#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/stats/exponent_histogram.hpp>

namespace halfscope {

/// The members of the histogram's JSON object, without its braces. As text, since it is most of what a
/// training run writes.
[[nodiscard]] std::string histogram_members(const ExponentHistogram& histogram);

/// The histogram of an object that has these members. `format` is at whose edges it was counted, FP16 unless
/// the object says otherwise; max_abs is 0 unless it has one. Throws InvalidArgument for a member that is
/// missing or of another kind, an unknown format, and lists that do not fit together.
[[nodiscard]] ExponentHistogram histogram_of(const Json& record);

}  // namespace halfscope
