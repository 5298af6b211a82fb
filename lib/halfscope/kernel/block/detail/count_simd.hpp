// The loops over rows of blocks, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/block/detail/count.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

/// Where count_elements writes.
struct ElementErrors {
  float *known, *errors;
};

/// The arrays of bring_to_scale.
struct ScaledSegment {
  const float* values;
  float *scaled, *scales;
  std::size_t count;
};

template <Isa isa>
void bring_to_scale_isa(const RowScales& row, std::int64_t column, const ScaledSegment& out);
template <>
void bring_to_scale_isa<Isa::baseline>(const RowScales&, std::int64_t, const ScaledSegment&);
template <>
void bring_to_scale_isa<Isa::avx2>(const RowScales&, std::int64_t, const ScaledSegment&);
template <>
void bring_to_scale_isa<Isa::avx512>(const RowScales&, std::int64_t, const ScaledSegment&);

template <Isa isa>
ElementCounts count_isa(const ScaledRow& row, const ElementLimits& limits, const ElementErrors& out);
template <>
ElementCounts count_isa<Isa::baseline>(const ScaledRow&, const ElementLimits&, const ElementErrors&);
template <>
ElementCounts count_isa<Isa::avx2>(const ScaledRow&, const ElementLimits&, const ElementErrors&);
template <>
ElementCounts count_isa<Isa::avx512>(const ScaledRow&, const ElementLimits&, const ElementErrors&);

}  // namespace halfscope
