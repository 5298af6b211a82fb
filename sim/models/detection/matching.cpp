// Matches anchors with boxes.
#include "sim/models/detection/matching.hpp"

#include <algorithm>

namespace halfscope {
namespace {

constexpr float least_overlap = 0.5f;

}  // namespace

std::vector<std::int32_t> match_anchors(std::span<const Box> anchors, std::span<const Box> boxes) {
  std::vector<std::int32_t> match(anchors.size(), unmatched);
  std::vector<float> overlap(anchors.size(), 0.0f);
  std::vector<std::size_t> best(boxes.size(), anchors.size());
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    float most = 0;
    for (std::size_t a = 0; a < anchors.size(); ++a) {
      const float share = intersection_over_union(anchors[a], boxes[b]);
      if (share > most) {
        most = share;
        best[b] = a;
      }
      if (share >= least_overlap && share > overlap[a]) {
        overlap[a] = share;
        match[a] = static_cast<std::int32_t>(b);
      }
    }
  }
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    if (best[b] < anchors.size()) match[best[b]] = static_cast<std::int32_t>(b);
  }
  return match;
}

AnchorTargets assign_targets(std::span<const Box> anchors, std::span<const Box> boxes, std::int64_t batch) {
  AnchorTargets targets;
  targets.labels.assign(anchors.size() * static_cast<std::size_t>(batch), 0);
  std::vector<BoxOffsets> offsets;
  std::size_t first = 0;
  for (std::int64_t n = 0; n < batch; ++n) {
    std::size_t last = first;
    while (last < boxes.size() && boxes[last].example == n) ++last;
    const auto of_image = boxes.subspan(first, last - first);
    const std::vector<std::int32_t> match = match_anchors(anchors, of_image);
    for (std::size_t a = 0; a < anchors.size(); ++a) {
      if (match[a] == unmatched) continue;
      const Box& box = of_image[static_cast<std::size_t>(match[a])];
      const std::size_t row = static_cast<std::size_t>(n) * anchors.size() + a;
      targets.labels[row] = box.label + 1;
      targets.matched.push_back(static_cast<std::int64_t>(row));
      offsets.push_back(encode_box(box, anchors[a]));
    }
    first = last;
  }
  targets.offsets = Array({static_cast<std::int64_t>(offsets.size()), box_offsets});
  float* to = targets.offsets.data();
  for (const BoxOffsets& row : offsets) to = std::copy(row.begin(), row.end(), to);
  return targets;
}

}  // namespace halfscope
