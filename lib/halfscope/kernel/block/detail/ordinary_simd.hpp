// The loops over ordinary rows that count, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/block/detail/ordinary.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

template <Isa isa>
OrdinaryCounts count_ordinary_isa(const OrdinaryRow& row, const SegmentRounding& rounding, float normal,
                                  float* scaled);
template <>
OrdinaryCounts count_ordinary_isa<Isa::baseline>(const OrdinaryRow&, const SegmentRounding&, float, float*);
template <>
OrdinaryCounts count_ordinary_isa<Isa::avx2>(const OrdinaryRow&, const SegmentRounding&, float, float*);
template <>
OrdinaryCounts count_ordinary_isa<Isa::avx512>(const OrdinaryRow&, const SegmentRounding&, float, float*);

template <Isa isa>
BeyondCounts count_beyond_isa(const OrdinaryRow& row, ScaleStep step, const ElementLimits& limits);
template <>
BeyondCounts count_beyond_isa<Isa::baseline>(const OrdinaryRow&, ScaleStep, const ElementLimits&);
template <>
BeyondCounts count_beyond_isa<Isa::avx2>(const OrdinaryRow&, ScaleStep, const ElementLimits&);
template <>
BeyondCounts count_beyond_isa<Isa::avx512>(const OrdinaryRow&, ScaleStep, const ElementLimits&);

template <Isa isa>
KindsOfBlocks mark_blocks_isa(const BlocksToMark& blocks, const MarkLimits& limits, std::uint8_t* marks);
template <>
KindsOfBlocks mark_blocks_isa<Isa::baseline>(const BlocksToMark&, const MarkLimits&, std::uint8_t*);
template <>
KindsOfBlocks mark_blocks_isa<Isa::avx2>(const BlocksToMark&, const MarkLimits&, std::uint8_t*);
template <>
KindsOfBlocks mark_blocks_isa<Isa::avx512>(const BlocksToMark&, const MarkLimits&, std::uint8_t*);

}  // namespace halfscope
