// Lays out the anchors.
#include "sim/models/detection/anchors.hpp"

namespace halfscope {
namespace {

Box square(float row, float column, float side) {
  const float half = 0.5f * side;
  return {.top = row - half, .left = column - half, .bottom = row + half, .right = column + half};
}

}  // namespace

std::vector<Box> make_anchors(std::span<const AnchorGrid> grids) {
  std::vector<Box> anchors;
  for (const AnchorGrid& grid : grids) {
    const auto centre = [&](std::int64_t cell) {
      return (static_cast<float>(cell) + 0.5f) * static_cast<float>(grid.stride);
    };
    for (std::int64_t r = 0; r < grid.height; ++r) {
      for (std::int64_t c = 0; c < grid.width; ++c) {
        for (const std::int64_t side : grid.sides) {
          anchors.push_back(square(centre(r), centre(c), static_cast<float>(side)));
        }
      }
    }
  }
  return anchors;
}

}  // namespace halfscope
