// Counts of ordinary rows with the instruction set in use.
#include <halfscope/kernel/block/detail/ordinary_simd.hpp>

#include <cstring>

namespace halfscope {

KindsOfBlocks mark_blocks(const BlocksToMark& blocks, const MarkLimits& limits,
                          std::span<std::uint8_t> marks) {
  return dispatch_isa([&]<Isa isa>() { return mark_blocks_isa<isa>(blocks, limits, marks.data()); });
}

OrdinaryCounts count_ordinary(const OrdinaryRow& row, const SegmentRounding& rounding, float normal,
                              float* scaled) {
  return dispatch_isa([&]<Isa isa>() { return count_ordinary_isa<isa>(row, rounding, normal, scaled); });
}

BeyondCounts count_beyond(const OrdinaryRow& row, ScaleStep step, const ElementLimits& limits) {
  return dispatch_isa([&]<Isa isa>() { return count_beyond_isa<isa>(row, step, limits); });
}

void FieldTables::add(std::span<const float> numbers) {
  const float* const from = numbers.data();
  std::size_t i = 0;
  for (; i + tables <= numbers.size(); i += tables) {
    std::uint64_t pairs[tables / 2];  // 64-bit loads: half as many
    std::memcpy(pairs, from + i, sizeof pairs);
    for (std::size_t k = 0; k < tables / 2; ++k) {
      ++counts[2 * k][pairs[k] >> 23 & 0xFF];
      ++counts[2 * k + 1][pairs[k] >> 55 & 0xFF];
    }
  }
  for (; i < numbers.size(); ++i) ++counts[0][magnitude_bits(from[i]) >> 23];
}

}  // namespace halfscope
