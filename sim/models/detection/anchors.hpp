// Anchors: the boxes from which a detector's predictions start.
#pragma once

#include <array>
#include <span>

#include "sim/data/dataset.hpp"

namespace halfscope {

inline constexpr std::int64_t anchors_per_cell = 3;

/// The cells of one feature map, and the sides of the squares that are centred on each.
struct AnchorGrid {
  std::int64_t height, width;  ///< cells
  std::int64_t stride;         ///< pixels per cell
  std::array<std::int64_t, anchors_per_cell> sides;
};

/// All anchors of one image, in the order in which `gather_predictions` puts their predictions: grid by grid,
/// cell by cell, side by side. They may reach beyond the image.
[[nodiscard]] std::vector<Box> make_anchors(std::span<const AnchorGrid> grids);

}  // namespace halfscope
