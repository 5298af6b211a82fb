// Dot products, on a tensor core or by fused multiply-adds, that say what their partial sums went through.
#pragma once

#include <span>

#include <halfscope/arithmetic/reduction_counters.hpp>
#include <halfscope/arithmetic/tensor_core.hpp>

namespace halfscope {

/// `dot` of a and b from c on, and what happened on the way: one reduction of a.size() terms. An add is a
/// step here: `stagnated` counts the steps that left the sum as it was though one of their products is not
/// zero, and `first_overflow` is the index of the step that made a sum of finite numbers infinite or NaN.
/// (Counters of the other models: counted_column_sums in kernel/reduce.hpp.)
[[nodiscard]] float counted_dot(std::span<const float> a, std::span<const float> b, float c,
                                const TensorCoreStep& step, ReductionCounters& counters);

/// The fused sum (AccumulateOrder::fused) of a[k] b[k] from zero in `format`, and what happened on the way: a
/// step is one fused multiply-add.
[[nodiscard]] float counted_fused_dot(std::span<const float> a, std::span<const float> b,
                                      const FloatFormat& format, ReductionCounters& counters);

}  // namespace halfscope
