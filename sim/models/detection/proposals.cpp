// Decodes, clips, ranks and suppresses proposals, in FP32 on the CPU.
#include "sim/models/detection/proposals.hpp"

#include <algorithm>
#include <limits>

#include "sim/models/detection/suppression.hpp"

namespace halfscope {
namespace {

constexpr std::size_t most_ranked = 200;
constexpr float most_proposal_overlap = 0.7f, least_side = 1;

Box clipped(const Box& box, const ImageExtent& image) {
  return {.top = std::clamp(box.top, 0.0f, image.height),
          .left = std::clamp(box.left, 0.0f, image.width),
          .bottom = std::clamp(box.bottom, 0.0f, image.height),
          .right = std::clamp(box.right, 0.0f, image.width)};
}

/// False for a NaN.
bool is_box(const Box& box) {
  return box.bottom - box.top >= least_side && box.right - box.left >= least_side;
}

}  // namespace

std::vector<Box> propose(std::span<const Box> anchors, const AnchorPredictions& predictions,
                         const ImageExtent& image, std::size_t count) {
  std::vector<Detection> candidates;
  for (std::size_t a = 0; a < anchors.size(); ++a) {
    BoxOffsets offsets{};
    std::copy_n(predictions.offsets.data() + a * offsets.size(), offsets.size(), offsets.begin());
    const Box box = clipped(decode_box(offsets, anchors[a]), image);
    const float score = predictions.objectness[2 * a + 1] - predictions.objectness[2 * a];
    if (is_box(box) && score > -std::numeric_limits<float>::infinity()) candidates.push_back({box, score});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Detection& a, const Detection& b) { return a.score > b.score; });
  candidates.resize(std::min(candidates.size(), most_ranked));
  std::vector<Box> proposals;
  for (const Detection& kept : suppress(std::move(candidates), most_proposal_overlap)) {
    if (proposals.size() < count) proposals.push_back(kept.box);
  }
  if (proposals.empty()) proposals.push_back({.bottom = image.height, .right = image.width});
  return proposals;
}

}  // namespace halfscope
