// Stochastic rounding of arrays; only for *_simd.cpp, which are compiled once per instruction set.
#pragma once

#include <cstddef>

#include <halfscope/core/random.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

/// out[i] = round(in[i], q, rounding_bits(stream, i)) for a quantizer whose rounding is stochastic.
template <Isa isa>
void round_stochastic_isa(const float* in, float* out, std::size_t count, const Quantizer& q,
                          const RandomStream& stream);
template <>
void round_stochastic_isa<Isa::baseline>(const float*, float*, std::size_t, const Quantizer&,
                                         const RandomStream&);
template <>
void round_stochastic_isa<Isa::avx2>(const float*, float*, std::size_t, const Quantizer&,
                                     const RandomStream&);
template <>
void round_stochastic_isa<Isa::avx512>(const float*, float*, std::size_t, const Quantizer&,
                                       const RandomStream&);

}  // namespace halfscope
