// Collects samples over the images of a batch.
#include "sim/models/detection/region_targets.hpp"

#include <algorithm>
#include <cmath>

#include <halfscope/core/parallel.hpp>

namespace halfscope {
namespace {

constexpr float shows_overlap = 0.5f;

/// Boxes of each of `batch` images.
std::vector<std::span<const Box>> by_image(std::span<const Box> boxes, std::size_t batch) {
  std::vector<std::span<const Box>> of_image(batch);
  std::size_t first = 0;
  for (std::size_t n = 0; n < batch; ++n) {
    std::size_t last = first;
    while (last < boxes.size() && boxes[last].example == static_cast<std::int32_t>(n)) ++last;
    of_image[n] = boxes.subspan(first, last - first);
    first = last;
  }
  return of_image;
}

Array offsets_array(std::span<const BoxOffsets> rows) {
  const DeviceScope here(Device::cpu);
  Array offsets({static_cast<std::int64_t>(rows.size()), box_offsets});
  float* to = offsets.data();
  for (const BoxOffsets& row : rows) to = std::copy(row.begin(), row.end(), to);
  return offsets;
}

/// Adds up the samples of one image after the other.
RegionTargets collect(std::span<const std::vector<Box>> candidates,
                      std::span<const std::span<const Box>> objects,
                      std::span<const std::vector<Sample>> samples) {
  RegionTargets targets;
  std::vector<BoxOffsets> offsets;
  for (std::size_t n = 0; n < candidates.size(); ++n) {
    for (const Sample& sample : samples[n]) {
      Box box = candidates[n][static_cast<std::size_t>(sample.place)];
      box.example = static_cast<std::int32_t>(n);
      std::int32_t label = 0;
      if (sample.object != background) {
        const Box& object = objects[n][static_cast<std::size_t>(sample.object)];
        label = object.label + 1;
        targets.matched.push_back(static_cast<std::int64_t>(targets.boxes.size()));
        offsets.push_back(encode_box(object, box));
      }
      targets.boxes.push_back(box);
      targets.labels.push_back(label);
    }
  }
  targets.offsets = offsets_array(offsets);
  return targets;
}

/// The first and the last but one cell of an extent. A NaN is at 0.
std::pair<std::int32_t, std::int32_t> cells_between(float low, float high, float stride, std::int64_t count) {
  const auto cell = [&](float at, std::int64_t most) {
    if (!(at > 0)) return 0;
    return static_cast<std::int32_t>(std::min(at, static_cast<float>(most)));
  };
  const std::int32_t first = cell(std::floor(low / stride), count - 1);
  return {first, std::max(first + 1, cell(std::ceil(high / stride), count))};
}

}  // namespace

AnchorSamples sampled_anchors(std::span<const Box> anchors, std::span<const Box> boxes, std::int64_t batch,
                              const SampleRule& rule, const RandomStream& random) {
  const auto images = static_cast<std::size_t>(batch);
  const auto objects = by_image(boxes, images);
  std::vector<std::vector<Sample>> samples(images);
  parallel_for(batch, [&](std::int64_t n) {
    const auto image = static_cast<std::size_t>(n);
    samples[image] = sample_anchors(anchors, objects[image], rule, {random, image * anchors.size()});
  });
  AnchorSamples all;
  std::vector<BoxOffsets> offsets;
  for (std::size_t n = 0; n < images; ++n) {
    for (const Sample& sample : samples[n]) {
      const auto place = static_cast<std::size_t>(sample.place), row = n * anchors.size() + place;
      all.rows.push_back(static_cast<std::int32_t>(row));
      all.labels.push_back(sample.object == background ? 0 : 1);
      if (sample.object == background) continue;
      all.matched.push_back(static_cast<std::int64_t>(row));
      offsets.push_back(encode_box(objects[n][static_cast<std::size_t>(sample.object)], anchors[place]));
    }
  }
  all.offsets = offsets_array(offsets);
  return all;
}

RegionTargets sampled_regions(std::span<const std::vector<Box>> proposals, std::span<const Box> boxes,
                              const SampleRule& rule, const RandomStream& random) {
  const auto objects = by_image(boxes, proposals.size());
  std::vector<std::vector<Box>> candidates(proposals.begin(), proposals.end());
  std::vector<std::vector<Sample>> samples;
  std::uint64_t first = 0;
  for (std::size_t n = 0; n < candidates.size(); ++n) {
    candidates[n].insert(candidates[n].end(), objects[n].begin(), objects[n].end());
    samples.push_back(sample_proposals(candidates[n], objects[n], rule, {random, first}));
    first += candidates[n].size();
  }
  return collect(candidates, objects, samples);
}

RegionTargets all_regions(std::span<const std::vector<Box>> proposals, std::span<const Box> boxes) {
  const auto objects = by_image(boxes, proposals.size());
  std::vector<std::vector<Sample>> samples;
  for (std::size_t n = 0; n < proposals.size(); ++n) {
    // Twice as many as there are: none is drawn.
    const SampleRule all{shows_overlap, shows_overlap, 2 * proposals[n].size()};
    samples.push_back(sample_proposals(proposals[n], objects[n], all, {}));
  }
  return collect(proposals, objects, samples);
}

std::vector<Region> cells_of(std::span<const Box> boxes, std::int64_t stride, const MapExtent& map) {
  std::vector<Region> regions;
  const auto pixels = static_cast<float>(stride);
  for (const Box& box : boxes) {
    const auto [top, bottom] = cells_between(box.top, box.bottom, pixels, map.rows);
    const auto [left, right] = cells_between(box.left, box.right, pixels, map.columns);
    regions.push_back({box.example, top, left, bottom, right});
  }
  return regions;
}

}  // namespace halfscope
