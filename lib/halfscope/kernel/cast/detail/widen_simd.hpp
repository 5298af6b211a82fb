// The widening loop, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

/// `widen` compiled for one instruction set.
template <Isa isa>
void widen_isa(DType type, const std::byte* in, float* out, std::size_t count);
template <>
void widen_isa<Isa::baseline>(DType, const std::byte*, float*, std::size_t);
template <>
void widen_isa<Isa::avx2>(DType, const std::byte*, float*, std::size_t);
template <>
void widen_isa<Isa::avx512>(DType, const std::byte*, float*, std::size_t);

}  // namespace halfscope
