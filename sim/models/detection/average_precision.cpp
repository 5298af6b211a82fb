// Ranks detections and integrates precision over recall.
#include "sim/models/detection/average_precision.hpp"

#include <algorithm>
#include <map>

namespace halfscope {
namespace {

constexpr float hit_overlap = 0.5f;

/// The boxes of one image and class that are not yet taken.
using Open = std::map<std::pair<std::int32_t, std::int32_t>, std::vector<Box>>;

bool takes_box(const Detection& detection, Open& open) {
  const auto place = open.find({detection.box.example, detection.box.label});
  if (place == open.end()) return false;
  std::vector<Box>& boxes = place->second;
  auto best = boxes.end();
  float most = 0;
  for (auto box = boxes.begin(); box != boxes.end(); ++box) {
    const float share = intersection_over_union(detection.box, *box);
    if (share < hit_overlap || share <= most) continue;
    most = share;
    best = box;
  }
  if (best == boxes.end()) return false;
  boxes.erase(best);
  return true;
}

}  // namespace

double average_precision_50(std::vector<Detection> detections, std::span<const Box> truth) {
  if (truth.empty()) return 0;
  std::stable_sort(detections.begin(), detections.end(),
                   [](const Detection& a, const Detection& b) { return a.score > b.score; });
  Open open;
  for (const Box& box : truth) open[{box.example, box.label}].push_back(box);
  std::vector<double> precision;  // at each right detection
  double right = 0;
  for (std::size_t i = 0; i < detections.size(); ++i) {
    if (!takes_box(detections[i], open)) continue;
    right += 1;
    precision.push_back(right / static_cast<double>(i + 1));
  }
  double area = 0, best = 0;
  for (std::size_t i = precision.size(); i-- > 0;) {
    best = std::max(best, precision[i]);
    area += best / static_cast<double>(truth.size());
  }
  return area;
}

}  // namespace halfscope
