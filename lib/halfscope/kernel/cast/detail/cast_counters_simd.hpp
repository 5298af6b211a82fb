// The loop that counts a cast, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/cast/cast_counters.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

/// `count_cast` compiled for one instruction set. The limits are those of `decisive`: of the values
/// themselves, or of the numbers to which they were rounded.
template <Isa isa>
void count_cast_isa(const float* values, const float* decisive, std::size_t count, const CastLimits& limits,
                    CastCounters& counters);
template <>
void count_cast_isa<Isa::baseline>(const float*, const float*, std::size_t, const CastLimits&, CastCounters&);
template <>
void count_cast_isa<Isa::avx2>(const float*, const float*, std::size_t, const CastLimits&, CastCounters&);
template <>
void count_cast_isa<Isa::avx512>(const float*, const float*, std::size_t, const CastLimits&, CastCounters&);

}  // namespace halfscope
