// Greedy suppression by descending score.
#include "sim/models/detection/suppression.hpp"

#include <algorithm>

namespace halfscope {

std::vector<Detection> suppress(std::vector<Detection> detections, float most_overlap) {
  std::stable_sort(detections.begin(), detections.end(),
                   [](const Detection& a, const Detection& b) { return a.score > b.score; });
  std::vector<Detection> kept;
  for (const Detection& candidate : detections) {
    const bool free = std::none_of(kept.begin(), kept.end(), [&](const Detection& better) {
      return intersection_over_union(better.box, candidate.box) > most_overlap;
    });
    if (free) kept.push_back(candidate);
  }
  return kept;
}

}  // namespace halfscope
