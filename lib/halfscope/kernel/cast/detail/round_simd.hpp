// The rounding loop, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

/// `round` compiled for one instruction set; `in` and `out` are the same array or do not overlap.
template <Isa isa>
void round_isa(const float* in, float* out, std::size_t count, const Quantizer& q, RandomStream stream);
template <>
void round_isa<Isa::baseline>(const float*, float*, std::size_t, const Quantizer&, RandomStream);
template <>
void round_isa<Isa::avx2>(const float*, float*, std::size_t, const Quantizer&, RandomStream);
template <>
void round_isa<Isa::avx512>(const float*, float*, std::size_t, const Quantizer&, RandomStream);

}  // namespace halfscope
