// Tile by tile, with the instruction set in use.
#include <halfscope/kernel/reduce/distance.hpp>

#include <algorithm>
#include <vector>

#include <halfscope/core/detail/equal_sizes.hpp>
#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/reduce/detail/distance_simd.hpp>

namespace halfscope {
namespace {

template <typename Number>
DistanceSums sums_of(std::span<const Number> found, std::span<const Number> expected) {
  detail::check_equal_sizes("distance_sums", found.size(), expected.size());
  std::vector<DistanceSums> tiles((found.size() + distance_tile - 1) / distance_tile);
  parallel_for(std::ssize(tiles), [&](std::int64_t index) noexcept {
    const auto tile = static_cast<std::size_t>(index);
    const std::size_t start = tile * distance_tile, count = std::min(distance_tile, found.size() - start);
    tiles[tile] = dispatch_isa(
        [&]<Isa isa>() { return tile_distance_isa<isa>(&found[start], &expected[start], count); });
  });
  DistanceSums total;
  for (const DistanceSums& tile : tiles) total += tile;
  return total;
}

}  // namespace

DistanceSums distance_sums(std::span<const float> found, std::span<const float> expected) {
  return sums_of(found, expected);
}

DistanceSums distance_sums(std::span<const double> found, std::span<const double> expected) {
  return sums_of(found, expected);
}

}  // namespace halfscope
