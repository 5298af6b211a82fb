// The loop of the cosine's sums, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/detail/dispatch.hpp>
#include <halfscope/kernel/reduce/cosine.hpp>

namespace halfscope {

template <Isa isa>
void cosine_sums_isa(const float* x, const float* q, std::size_t count, CosineSums& sums);
template <>
void cosine_sums_isa<Isa::baseline>(const float*, const float*, std::size_t, CosineSums&);
template <>
void cosine_sums_isa<Isa::avx2>(const float*, const float*, std::size_t, CosineSums&);
template <>
void cosine_sums_isa<Isa::avx512>(const float*, const float*, std::size_t, CosineSums&);

}  // namespace halfscope
