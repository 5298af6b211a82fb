// Largest magnitudes of blocks with the instruction set in use.
#include <halfscope/kernel/block/detail/maxima.hpp>

#include <algorithm>
#include <array>

#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/block/detail/maxima_simd.hpp>

namespace halfscope {
namespace {

constexpr std::size_t most_columns = 1024;

/// The largest magnitude of each column of a band.
void find_column_maxima(const BandOfBlocks& band, float* largest) {
  const auto width = static_cast<std::size_t>(band.width);
  dispatch_isa([&]<Isa isa>() {
    larger_magnitudes_isa<isa>(band.row(0).data(), band.row(1).data(), width, largest);
    for (std::int64_t i = 2; i < band.rows; ++i)
      larger_magnitudes_isa<isa>(band.row(i).data(), largest, width, largest);
  });
}

}  // namespace

void add_to_maxima(std::span<const float> values, std::int64_t columns, std::span<BlockMaxima> blocks) {
  dispatch_isa([&]<Isa isa>() {
    maxima_isa<isa>(values.data(), values.size(), static_cast<std::size_t>(columns), blocks.data());
  });
}

void find_maxima(const BandOfBlocks& band, std::span<BlockMaxima> blocks) {
  std::ranges::fill(blocks, BlockMaxima{});
  if (band.rows > 1 && static_cast<std::size_t>(band.width) <= most_columns) {
    alignas(64) std::array<float, most_columns> largest;
    find_column_maxima(band, largest.data());
    add_to_maxima(std::span(largest).first(static_cast<std::size_t>(band.width)), band.columns, blocks);
    const auto has_nan = [](const BlockMaxima& block) { return block.any > infinity_bits; };
    if (std::ranges::none_of(blocks, has_nan)) return;
    // A NaN hides the numbers of its column.
    std::ranges::fill(blocks, BlockMaxima{});
  }
  for (std::int64_t i = 0; i < band.rows; ++i) add_to_maxima(band.row(i), band.columns, blocks);
}

}  // namespace halfscope
