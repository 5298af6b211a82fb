// Largest magnitudes of blocks with the instruction set in use.
#include <halfscope/kernel/block/detail/maxima.hpp>

#include <algorithm>
#include <array>
#include <vector>

#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/block/detail/maxima_simd.hpp>

namespace halfscope {
namespace {

constexpr std::int64_t most_columns = 1024;

/// The largest magnitude of each column of a band.
void find_column_maxima(const BandOfBlocks& band, float* largest) {
  const auto width = static_cast<std::size_t>(band.width);
  dispatch_isa([&]<Isa isa>() {
    larger_magnitudes_isa<isa>(band.row(0).data(), band.row(1).data(), width, largest);
    for (std::int64_t i = 2; i < band.rows; ++i)
      larger_magnitudes_isa<isa>(band.row(i).data(), largest, width, largest);
  });
}

void find_some_maxima(const BandOfBlocks& band, std::span<BlockMaxima> blocks) {
  if (band.rows > 1 && band.width <= most_columns) {
    alignas(64) std::array<float, most_columns> largest;
    find_column_maxima(band, largest.data());
    const auto width = static_cast<std::size_t>(band.width);
    find_row_maxima(std::span(largest).first(width), band.columns, blocks);
    // A NaN hides the numbers of its column.
    const auto has_nan = [](const BlockMaxima& block) { return block.any > infinity_bits; };
    if (std::ranges::none_of(blocks, has_nan)) return;
  }
  find_row_maxima(band.row(0), band.columns, blocks);
  std::vector<BlockMaxima> row(band.rows > 1 ? blocks.size() : 0);
  for (std::int64_t i = 1; i < band.rows; ++i) {
    find_row_maxima(band.row(i), band.columns, row);
    for (std::size_t k = 0; k < row.size(); ++k) {
      blocks[k].number = std::max(blocks[k].number, row[k].number);
      blocks[k].any = std::max(blocks[k].any, row[k].any);
    }
  }
}

}  // namespace

void find_row_maxima(std::span<const float> values, std::int64_t columns, std::span<BlockMaxima> blocks) {
  dispatch_isa([&]<Isa isa>() {
    maxima_isa<isa>(values.data(), values.size(), static_cast<std::size_t>(columns), blocks.data());
  });
}

void find_maxima(const BandOfBlocks& band, std::span<BlockMaxima> blocks) {
  const std::int64_t columns = most_columns / band.columns * band.columns;
  if (band.rows == 1 || band.width <= columns || columns == 0) return find_some_maxima(band, blocks);
  for (std::int64_t at = 0; at < band.width; at += columns) {
    const std::int64_t width = std::min(columns, band.width - at);
    const auto first = static_cast<std::size_t>(at / band.columns);
    const auto count = static_cast<std::size_t>((width + band.columns - 1) / band.columns);
    find_some_maxima({band.values + at, band.rows, band.stride, width, band.columns},
                     blocks.subspan(first, count));
  }
}

}  // namespace halfscope
