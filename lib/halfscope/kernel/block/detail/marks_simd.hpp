// The loops over blocks that mark them, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/block/detail/marks.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

template <Isa isa>
KindsOfBlocks mark_blocks_isa(const BlocksToMark& blocks, const MarkLimits& limits, std::uint32_t* marks);
template <>
KindsOfBlocks mark_blocks_isa<Isa::baseline>(const BlocksToMark&, const MarkLimits&, std::uint32_t*);
template <>
KindsOfBlocks mark_blocks_isa<Isa::avx2>(const BlocksToMark&, const MarkLimits&, std::uint32_t*);
template <>
KindsOfBlocks mark_blocks_isa<Isa::avx512>(const BlocksToMark&, const MarkLimits&, std::uint32_t*);

template <Isa isa>
bool mark_ordinary_isa(const BlocksToMark& blocks, const MarkLimits& limits, std::uint32_t* marks,
                       KindsOfBlocks& kinds);
template <>
bool mark_ordinary_isa<Isa::baseline>(const BlocksToMark&, const MarkLimits&, std::uint32_t*, KindsOfBlocks&);
template <>
bool mark_ordinary_isa<Isa::avx2>(const BlocksToMark&, const MarkLimits&, std::uint32_t*, KindsOfBlocks&);
template <>
bool mark_ordinary_isa<Isa::avx512>(const BlocksToMark&, const MarkLimits&, std::uint32_t*, KindsOfBlocks&);

}  // namespace halfscope
