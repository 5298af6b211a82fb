// Stochastic rounding of arrays; only for *_simd.cpp, which are compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include <halfscope/core/random.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

/// Random bits of a part of an array, which begins at element `first` of it.
struct PartStream {
  const RandomStream& stream;
  std::uint64_t first = 0;
};

/// out[i] = round(in[i], q, rounding_bits(stream, first + i)) for a quantizer whose rounding is stochastic.
template <Isa isa>
void round_stochastic_isa(const float* in, float* out, std::size_t count, const Quantizer& q,
                          const PartStream& part);
template <>
void round_stochastic_isa<Isa::baseline>(const float*, float*, std::size_t, const Quantizer&,
                                         const PartStream&);
template <>
void round_stochastic_isa<Isa::avx2>(const float*, float*, std::size_t, const Quantizer&, const PartStream&);
template <>
void round_stochastic_isa<Isa::avx512>(const float*, float*, std::size_t, const Quantizer&,
                                       const PartStream&);

}  // namespace halfscope
