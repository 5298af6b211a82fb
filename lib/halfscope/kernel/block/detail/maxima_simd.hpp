// The loops over magnitudes of blocks, compiled once per instruction set.
#pragma once

#include <cstddef>

#include <halfscope/kernel/block/detail/maxima.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

template <Isa isa>
void maxima_isa(const float* values, std::size_t count, std::size_t columns, BlockMaxima* blocks);
template <>
void maxima_isa<Isa::baseline>(const float*, std::size_t, std::size_t, BlockMaxima*);
template <>
void maxima_isa<Isa::avx2>(const float*, std::size_t, std::size_t, BlockMaxima*);
template <>
void maxima_isa<Isa::avx512>(const float*, std::size_t, std::size_t, BlockMaxima*);

/// The larger magnitude of two rows in each column.
template <Isa isa>
void larger_magnitudes_isa(const float* values, const float* others, std::size_t count, float* out);
template <>
void larger_magnitudes_isa<Isa::baseline>(const float*, const float*, std::size_t, float*);
template <>
void larger_magnitudes_isa<Isa::avx2>(const float*, const float*, std::size_t, float*);
template <>
void larger_magnitudes_isa<Isa::avx512>(const float*, const float*, std::size_t, float*);

}  // namespace halfscope
