// Marks of blocks with the instruction set in use.
#include <halfscope/kernel/block/detail/marks_simd.hpp>

namespace halfscope {

KindsOfBlocks mark_blocks(const BlocksToMark& blocks, const MarkLimits& limits,
                          std::span<std::uint32_t> marks) {
  return dispatch_isa([&]<Isa isa>() { return mark_blocks_isa<isa>(blocks, limits, marks.data()); });
}

bool mark_ordinary_blocks(const BlocksToMark& blocks, const MarkLimits& limits,
                          std::span<std::uint32_t> marks, KindsOfBlocks& kinds) {
  return dispatch_isa([&]<Isa isa>() { return mark_ordinary_isa<isa>(blocks, limits, marks.data(), kinds); });
}

}  // namespace halfscope
