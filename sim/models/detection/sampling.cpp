// Compares boxes with objects, and draws from both kinds.
#include "sim/models/detection/sampling.hpp"

#include <algorithm>

namespace halfscope {
namespace {

/// The object that a box overlaps most, the first of equals.
struct Nearest {
  std::int32_t object = background;
  float overlap = 0;
};

std::vector<Nearest> nearest_objects(std::span<const Box> boxes, std::span<const Box> objects) {
  std::vector<Nearest> nearest(boxes.size());
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    for (std::size_t o = 0; o < objects.size(); ++o) {
      const float overlap = intersection_over_union(boxes[i], objects[o]);
      if (overlap > nearest[i].overlap) nearest[i] = {static_cast<std::int32_t>(o), overlap};
    }
  }
  return nearest;
}

/// `count` of the samples at most, by the random bits of their places.
std::vector<Sample> drawn(std::vector<Sample> samples, std::size_t count, const SampleStream& random) {
  if (samples.size() <= count) return samples;
  std::vector<std::pair<std::uint32_t, std::size_t>> order;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto place = random.first + static_cast<std::uint64_t>(samples[i].place);
    order.emplace_back(random.stream.bits(place), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<Sample> kept;
  for (std::size_t i = 0; i < count; ++i) kept.push_back(samples[order[i].second]);
  return kept;
}

/// Sorts the boxes by their overlap and draws.
std::vector<Sample> sample(std::span<const Nearest> nearest, const SampleRule& rule,
                           const SampleStream& random) {
  std::vector<Sample> objects, backgrounds;
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    const auto place = static_cast<std::int32_t>(i);
    if (nearest[i].overlap >= rule.object_overlap) {
      objects.push_back({place, nearest[i].object});
    } else if (nearest[i].overlap < rule.background_overlap) {
      backgrounds.push_back({place, background});
    }
  }
  std::vector<Sample> samples = drawn(std::move(objects), rule.count / 2, random);
  const auto others = drawn(std::move(backgrounds), rule.count - samples.size(), random);
  samples.insert(samples.end(), others.begin(), others.end());
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.place < b.place; });
  return samples;
}

}  // namespace

std::vector<Sample> sample_anchors(std::span<const Box> anchors, std::span<const Box> objects,
                                   const SampleRule& rule, const SampleStream& random) {
  std::vector<Nearest> nearest = nearest_objects(anchors, objects);
  for (std::size_t o = 0; o < objects.size(); ++o) {
    float most = 0;
    std::size_t best = anchors.size();
    for (std::size_t a = 0; a < anchors.size(); ++a) {
      const float overlap = intersection_over_union(anchors[a], objects[o]);
      if (overlap <= most) continue;
      most = overlap;
      best = a;
    }
    if (best < anchors.size()) nearest[best] = {static_cast<std::int32_t>(o), rule.object_overlap};
  }
  return sample(nearest, rule, random);
}

std::vector<Sample> sample_proposals(std::span<const Box> proposals, std::span<const Box> objects,
                                     const SampleRule& rule, const SampleStream& random) {
  return sample(nearest_objects(proposals, objects), rule, random);
}

}  // namespace halfscope
