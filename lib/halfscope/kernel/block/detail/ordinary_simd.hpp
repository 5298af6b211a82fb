// The loops over ordinary rows that count, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/block/detail/ordinary.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

template <Isa isa>
OrdinaryCounts count_ordinary_isa(const OrdinaryRow& row, const SegmentRounding& rounding, float normal,
                                  const OrdinaryOutput& out);
template <>
OrdinaryCounts count_ordinary_isa<Isa::baseline>(const OrdinaryRow&, const SegmentRounding&, float,
                                                 const OrdinaryOutput&);
template <>
OrdinaryCounts count_ordinary_isa<Isa::avx2>(const OrdinaryRow&, const SegmentRounding&, float,
                                             const OrdinaryOutput&);
template <>
OrdinaryCounts count_ordinary_isa<Isa::avx512>(const OrdinaryRow&, const SegmentRounding&, float,
                                               const OrdinaryOutput&);

template <Isa isa>
NumberCounts count_numbers_isa(const float* values, std::size_t count);
template <>
NumberCounts count_numbers_isa<Isa::baseline>(const float*, std::size_t);
template <>
NumberCounts count_numbers_isa<Isa::avx2>(const float*, std::size_t);
template <>
NumberCounts count_numbers_isa<Isa::avx512>(const float*, std::size_t);

template <Isa isa>
std::int64_t count_from_isa(const OrdinaryRow& row, ScaleStep step, float magnitude);
template <>
std::int64_t count_from_isa<Isa::baseline>(const OrdinaryRow&, ScaleStep, float);
template <>
std::int64_t count_from_isa<Isa::avx2>(const OrdinaryRow&, ScaleStep, float);
template <>
std::int64_t count_from_isa<Isa::avx512>(const OrdinaryRow&, ScaleStep, float);

/// The count of each binade of the planes, the lowest first.
template <Isa isa>
void add_planes_isa(const BinadePlanes& planes, std::int64_t* counts);
template <>
void add_planes_isa<Isa::baseline>(const BinadePlanes&, std::int64_t*);
template <>
void add_planes_isa<Isa::avx2>(const BinadePlanes&, std::int64_t*);
template <>
void add_planes_isa<Isa::avx512>(const BinadePlanes&, std::int64_t*);

}  // namespace halfscope
