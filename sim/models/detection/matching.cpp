// Matches anchors with boxes.
#include "sim/models/detection/matching.hpp"

#include <algorithm>

#include <halfscope/core/parallel.hpp>

namespace halfscope {
namespace {

constexpr float positive_overlap = 0.5f;

/// Consecutive anchors, and the box around them: whole runs lie apart from a box, where a image_size is
/// large.
struct AnchorRun {
  static constexpr std::size_t longest = 64;
  std::size_t first, last;
  Box around;
};

std::vector<AnchorRun> runs_of(std::span<const Box> anchors) {
  std::vector<AnchorRun> runs;
  for (std::size_t first = 0; first < anchors.size(); first += AnchorRun::longest) {
    AnchorRun run{first, std::min(anchors.size(), first + AnchorRun::longest), anchors[first]};
    for (const Box& anchor : anchors.subspan(first, run.last - first)) {
      run.around.top = std::min(run.around.top, anchor.top);
      run.around.left = std::min(run.around.left, anchor.left);
      run.around.bottom = std::max(run.around.bottom, anchor.bottom);
      run.around.right = std::max(run.around.right, anchor.right);
    }
    runs.push_back(run);
  }
  return runs;
}

}  // namespace

std::vector<std::int32_t> match_anchors(std::span<const Box> anchors, std::span<const Box> boxes) {
  std::vector<std::int32_t> match(anchors.size(), unmatched);
  std::vector<float> overlap(anchors.size(), 0.0f);
  std::vector<std::size_t> best(boxes.size(), anchors.size());
  const std::vector<AnchorRun> runs = runs_of(anchors);
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    float most = 0;
    for (const AnchorRun& run : runs) {
      if (intersection_over_union(run.around, boxes[b]) == 0) continue;
      for (std::size_t a = run.first; a < run.last; ++a) {
        const float share = intersection_over_union(anchors[a], boxes[b]);
        if (share > most) {
          most = share;
          best[b] = a;
        }
        if (share >= positive_overlap && share > overlap[a]) {
          overlap[a] = share;
          match[a] = static_cast<std::int32_t>(b);
        }
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
  const auto images = static_cast<std::size_t>(batch);
  std::vector<std::span<const Box>> of_image(images);
  std::size_t first = 0;
  for (std::size_t n = 0; n < images; ++n) {
    std::size_t last = first;
    while (last < boxes.size() && boxes[last].example == static_cast<std::int32_t>(n)) ++last;
    of_image[n] = boxes.subspan(first, last - first);
    first = last;
  }
  std::vector<std::vector<std::int32_t>> matches(images);
  parallel_for(batch, [&](std::int64_t n) {
    matches[static_cast<std::size_t>(n)] = match_anchors(anchors, of_image[static_cast<std::size_t>(n)]);
  });
  std::vector<BoxOffsets> offsets;
  for (std::size_t n = 0; n < images; ++n) {
    for (std::size_t a = 0; a < anchors.size(); ++a) {
      const std::int32_t match = matches[n][a];
      if (match == unmatched) continue;
      const Box& box = of_image[n][static_cast<std::size_t>(match)];
      const std::size_t row = n * anchors.size() + a;
      targets.labels[row] = box.label + 1;
      targets.matched.push_back(static_cast<std::int64_t>(row));
      offsets.push_back(encode_box(box, anchors[a]));
    }
  }
  targets.offsets = Array({static_cast<std::int64_t>(offsets.size()), box_offsets});
  float* to = targets.offsets.data();
  for (const BoxOffsets& row : offsets) to = std::copy(row.begin(), row.end(), to);
  return targets;
}

}  // namespace halfscope
