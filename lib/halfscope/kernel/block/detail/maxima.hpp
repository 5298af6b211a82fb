// Largest magnitudes of blocks.
#pragma once

#include <cstdint>
#include <span>

namespace halfscope {

/// Largest magnitudes of a block, as bits of floats: without NaNs, and with them.
struct BlockMaxima {
  std::uint32_t number = 0, any = 0;

  friend bool operator==(const BlockMaxima&, const BlockMaxima&) = default;
};

/// The maxima of the blocks that a row of `values` crosses, `columns` elements each, the last one maybe
/// fewer; `blocks` has a place for each of them.
void find_row_maxima(std::span<const float> values, std::int64_t columns, std::span<BlockMaxima> blocks);

/// Rows of blocks beside each other: `width` elements from each of `rows` rows that are `stride` apart.
struct BandOfBlocks {
  const float* values;
  std::int64_t rows, stride, width;
  std::int64_t columns;  ///< columns of a block

  [[nodiscard]] std::span<const float> row(std::int64_t i) const {
    return {values + i * stride, static_cast<std::size_t>(width)};
  }
};
/// The maxima of the blocks of a band, which is a block high at most.
void find_maxima(const BandOfBlocks& band, std::span<BlockMaxima> blocks);

}  // namespace halfscope
