// Matching: which anchor is to predict which box.
#pragma once

#include <span>

#include "sim/models/detection/box.hpp"

namespace halfscope {

/// No box.
inline constexpr std::int32_t unmatched = -1;

/// For each anchor the index of its box among the boxes of one image: the one that it overlaps most (the
/// first of equals), if by at least 0.5; and for each box, in their order, the anchor that overlaps it most,
/// whatever that is above 0 and whatever that anchor had before.
[[nodiscard]] std::vector<std::int32_t> match_anchors(std::span<const Box> anchors,
                                                      std::span<const Box> boxes);

/// Targets for the predictions of a batch.
struct AnchorTargets {
  std::vector<std::int32_t> labels;   // (batch * anchors): 0 is the background, else 1 + the box's class
  std::vector<std::int64_t> matched;  // the rows with a box
  Array offsets;                      // (matched, 4)
};
/// `boxes` are those of `batch` images, those of the first image first.
[[nodiscard]] AnchorTargets assign_targets(std::span<const Box> anchors, std::span<const Box> boxes,
                                           std::int64_t batch);

}  // namespace halfscope
