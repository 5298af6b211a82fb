// Dot products, on a tensor core or by fused multiply-adds, that say what their partial sums went through.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/arithmetic/tensor_core.hpp>

namespace halfscope {

/// Counters of one or several reductions of the same length (the channels of a batch norm, say), merged.
struct ReductionCounters {
  std::int64_t reductions = 0;       ///< how many results
  std::int64_t terms = 0;            ///< terms of each
  std::int64_t overflowed = 0;       ///< results that became infinite or NaN from finite terms
  std::int64_t first_overflow = -1;  ///< smallest index of the add that overflowed, -1 if none did
  std::int64_t stagnated = 0;        ///< adds of a nonzero term that left the partial sum as it was
  float largest_partial_sum = 0;     ///< largest finite |partial sum|

  void merge(const ReductionCounters& other);
  friend bool operator==(const ReductionCounters&, const ReductionCounters&) = default;
};

/// `dot` of a and b from c on, and what happened on the way: one reduction of a.size() terms. An add is a
/// step here: `stagnated` counts the steps that left the sum as it was though one of their products is not
/// zero, and `first_overflow` is the index of the step that made a sum of finite numbers infinite or NaN.
/// (Counters of the other models: counted_column_sums in kernel/reduce.hpp.) Throws InvalidArgument as `dot`
/// does.
[[nodiscard]] float counted_dot(std::span<const float> a, std::span<const float> b, float c,
                                const TensorCoreStep& step, ReductionCounters& counters);

/// The fused sum (AccumulateOrder::fused) of a[k] b[k] from zero in `format`, and what happened on the way: a
/// step is one fused multiply-add. Throws InvalidArgument where `a` and `b` differ in size.
[[nodiscard]] float counted_fused_dot(std::span<const float> a, std::span<const float> b,
                                      const FloatFormat& format, ReductionCounters& counters);

}  // namespace halfscope
