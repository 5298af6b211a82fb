// Reductions of a normalisation layer: under the policy's model, shown to the trackers.
#pragma once

#include <halfscope/kernel/reduce/reduce.hpp>

#include "sim/tape/cast_scope.hpp"

namespace halfscope {

/// (columns): the sums of `terms` under the reduction model for `layer`, shown to the trackers as
/// "LAYER.TENSOR".
[[nodiscard]] Array reduce(const CastScope& casts, const std::string& layer, const std::string& tensor,
                           const ColumnTerms& terms);

/// sum / count in FP32; a 16-bit accumulator's result is divided as it is.
[[nodiscard]] Array mean_of(Array sums, std::int64_t count);

}  // namespace halfscope
