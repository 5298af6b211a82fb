// A histogram's JSON record: a line of histograms.jsonl, or the histogram of a trace's step.
#pragma once

#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/stats/exponent_histogram.hpp>

namespace halfscope {

/// The FP16 histogram that `record` holds, as it was taken: with the loss scale in it. max_abs is 0 where the
/// record lacks it. Throws InvalidArgument where another key is missing or the lists do not fit together.
[[nodiscard]] ExponentHistogram histogram_of(const Json& record);

}  // namespace halfscope
