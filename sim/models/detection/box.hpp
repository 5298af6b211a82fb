// Geometry of boxes, and how a box is written relative to an anchor.
#pragma once

#include <array>

#include "sim/data/dataset.hpp"

namespace halfscope {

/// Area of the intersection over area of the union (0 where both are empty).
[[nodiscard]] float intersection_over_union(const Box& a, const Box& b);

/// Numbers per box: its centre's row and column, its height and width.
inline constexpr std::int64_t box_offsets = 4;
using BoxOffsets = std::array<float, box_offsets>;

/// `box` as seen from `anchor`: the centre's distance in anchor sides, divided by 0.1, and the logarithm of
/// the ratio of sides, divided by 0.2 (Liu et al., ECCV 2016, with the factors of its published code).
[[nodiscard]] BoxOffsets encode_box(const Box& box, const Box& anchor);
/// The box that `encode_box` writes as `offsets`; a side never exceeds 1000 times the anchor's. `example` and
/// `label` are 0.
[[nodiscard]] Box decode_box(const BoxOffsets& offsets, const Box& anchor);

}  // namespace halfscope
