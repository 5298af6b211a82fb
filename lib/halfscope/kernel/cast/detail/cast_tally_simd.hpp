// The loop that counts a cast, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/cast/cast_tally.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

/// `tally_cast` compiled for one instruction set.
template <Isa isa>
void tally_cast_isa(const float* values, std::size_t count, const CastLimits& limits, CastTally& tally);
template <>
void tally_cast_isa<Isa::baseline>(const float*, std::size_t, const CastLimits&, CastTally&);
template <>
void tally_cast_isa<Isa::avx2>(const float*, std::size_t, const CastLimits&, CastTally&);
template <>
void tally_cast_isa<Isa::avx512>(const float*, std::size_t, const CastLimits&, CastTally&);

}  // namespace halfscope
