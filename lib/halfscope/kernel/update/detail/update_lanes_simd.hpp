// Loops over weight updates, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/detail/dispatch.hpp>
#include <halfscope/kernel/update/detail/update_lanes.hpp>

namespace halfscope {

template <Isa isa>
void add_updates_isa(const float* stored, const float* update, int mantissa_bits, float* out,
                     std::size_t count);
template <>
void add_updates_isa<Isa::baseline>(const float*, const float*, int, float*, std::size_t);
template <>
void add_updates_isa<Isa::avx2>(const float*, const float*, int, float*, std::size_t);
template <>
void add_updates_isa<Isa::avx512>(const float*, const float*, int, float*, std::size_t);

template <Isa isa>
void count_updates_isa(const UpdateArrays& arrays, UpdateLanes& counters);
template <>
void count_updates_isa<Isa::baseline>(const UpdateArrays&, UpdateLanes&);
template <>
void count_updates_isa<Isa::avx2>(const UpdateArrays&, UpdateLanes&);
template <>
void count_updates_isa<Isa::avx512>(const UpdateArrays&, UpdateLanes&);

template <Isa isa>
std::size_t update_ratios_isa(const float* weights, const float* updates, float* out, std::size_t count);
template <>
std::size_t update_ratios_isa<Isa::baseline>(const float*, const float*, float*, std::size_t);
template <>
std::size_t update_ratios_isa<Isa::avx2>(const float*, const float*, float*, std::size_t);
template <>
std::size_t update_ratios_isa<Isa::avx512>(const float*, const float*, float*, std::size_t);

}  // namespace halfscope
