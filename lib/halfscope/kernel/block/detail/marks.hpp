// Marks of blocks: which of them are counted in one pass, and how many there are of each kind.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/kernel/block/detail/count.hpp>
#include <halfscope/kernel/block/detail/maxima.hpp>

namespace halfscope {

/// Marks of a block: which of its elements need more than one pass.
struct BlockMark {
  static constexpr std::uint32_t clips = 1;  ///< an element is beyond the limits
  /// The block needs the slow path: it is no OrdinaryRow, a value may be infinite, a normal element's may be
  /// zero, a scale of 0 stands over numbers, or an element lies at its scale beyond `MarkLimits::end`.
  static constexpr std::uint32_t special = 2;
  static constexpr std::uint32_t overflows = 4;  ///< an element that clips overflows
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
  float end;
};
/// How many blocks are of each kind; blocks at risk overflow, are not finite, or lose numbers to a scale of 0
/// or NaN.
struct KindsOfBlocks {
  std::int64_t zero = 0, nonfinite = 0, clipped = 0, overflow = 0, at_risk = 0;
};
/// Counts blocks, and writes the marks of each.
KindsOfBlocks mark_blocks(const BlocksToMark& blocks, const MarkLimits& limits,
                          std::span<std::uint32_t> marks);

/// The same, without the largest finite magnitudes, and in a third of the time, of blocks none of which is
/// special; returns false where one is.
[[nodiscard]] bool mark_ordinary_blocks(const BlocksToMark& blocks, const MarkLimits& limits,
                                        std::span<std::uint32_t> marks, KindsOfBlocks& kinds);

/// The first magnitude, as bits and at least 1, that gets a block under that scale a mark.
[[nodiscard]] std::uint32_t first_marked(const BlockScale& scale, const MarkLimits& limits);

}  // namespace halfscope
