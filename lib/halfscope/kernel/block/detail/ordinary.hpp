// Counts of ordinary rows of blocks: one pass that rounds, counts and adds up squares.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <halfscope/kernel/block/detail/count.hpp>
#include <halfscope/kernel/block/detail/maxima.hpp>
#include <halfscope/kernel/block/detail/segment.hpp>

namespace halfscope {

/// Marks of a block: which of its elements need more than one pass.
struct BlockMark {
  static constexpr std::uint8_t clips = 1;  ///< an element is beyond the limits
  /// As no OrdinaryRow, or with a value that may be infinite, or with a scale of 0 over numbers.
  static constexpr std::uint8_t special = 2;
};

/// Blocks, their scales, and the largest finite magnitude of each.
struct BlocksToMark {
  std::span<const BlockMaxima> maxima;
  std::span<const float> amax;
  std::span<const BlockScale> scales;
};
struct MarkLimits {
  ElementLimits elements;
  float largest;  ///< number of the element format
  float tensor_scale;
  ScaleStep step;
};
/// How many blocks are of each kind; blocks at risk overflow, are not finite, or lose numbers to a scale of 0
/// or NaN.
struct KindsOfBlocks {
  std::int64_t zero = 0, nonfinite = 0, clipped = 0, overflow = 0, at_risk = 0;
};
/// Counts blocks, and writes the marks of each.
KindsOfBlocks mark_blocks(const BlocksToMark& blocks, const MarkLimits& limits,
                          std::span<std::uint8_t> marks);

/// Elements of a row by what became of them, and squares added up as CosineSums, then over the lanes.
struct OrdinaryCounts {
  std::int64_t zeros = 0;        ///< are zero
  std::int64_t zero_values = 0;  ///< get the value zero
  std::int64_t subnormal = 0;    ///< become subnormal numbers of the element format, not of value zero
  double signal = 0, error = 0;  ///< squares of elements, and of what values differ from them by
};
/// Counts a row none of whose values is infinite, with a rounding that takes ordinary numbers; elements below
/// `normal` are subnormal. `scaled`, unless it is null, gets the row's elements at their scale, before they
/// are rounded.
[[nodiscard]] OrdinaryCounts count_ordinary(const OrdinaryRow& row, const SegmentRounding& rounding,
                                            float normal, float* scaled);

/// Elements beyond the limits at their block's scale.
struct BeyondCounts {
  std::int64_t clipped = 0, overflow = 0;
};
[[nodiscard]] BeyondCounts count_beyond(const OrdinaryRow& row, ScaleStep step, const ElementLimits& limits);

/// Counts of numbers by exponent field, in several tables so that no increment waits for the one before.
struct FieldTables {
  static constexpr std::size_t tables = 8, fields = 256;
  std::array<std::array<std::uint32_t, fields>, tables> counts{};

  void add(std::span<const float> numbers);
  [[nodiscard]] std::int64_t of(std::size_t field) const {
    std::int64_t sum = 0;
    for (const auto& table : counts) sum += table[field];
    return sum;
  }
};

}  // namespace halfscope
