// Targets of a two-stage detector: of the anchors and of the regions that are sampled from a batch.
#pragma once

#include <span>
#include <vector>

#include "lib/nn/roi_pool.hpp"
#include "sim/models/detection/sampling.hpp"

namespace halfscope {

/// Sampled anchors of a batch; a row is the anchor's place among those of all images.
struct AnchorSamples {
  std::vector<std::int32_t> rows;     // (samples)
  std::vector<std::int32_t> labels;   // (samples): 1 for an object, else 0
  std::vector<std::int64_t> matched;  // the rows with an object
  Array offsets;                      // (matched, 4)
};
/// `boxes` are those of `batch` images, those of the first image first.
[[nodiscard]] AnchorSamples sampled_anchors(std::span<const Box> anchors, std::span<const Box> boxes,
                                            std::int64_t batch, const SampleRule& rule,
                                            const RandomStream& random);

/// Regions of a batch, those of the first image first, and what they show.
struct RegionTargets {
  std::vector<Box> boxes;             // (regions); `example` is the image
  std::vector<std::int32_t> labels;   // (regions): 0 is the background, else 1 + the box's class
  std::vector<std::int64_t> matched;  // the regions with an object
  Array offsets;                      // (matched, 4)
};
/// Samples of each image's proposals and of its boxes, which stand behind them.
[[nodiscard]] RegionTargets sampled_regions(std::span<const std::vector<Box>> proposals,
                                            std::span<const Box> boxes, const SampleRule& rule,
                                            const RandomStream& random);
/// All proposals. A proposal that overlaps a box by at least 0.5 shows its object.
[[nodiscard]] RegionTargets all_regions(std::span<const std::vector<Box>> proposals,
                                        std::span<const Box> boxes);

/// Rows and columns of a feature map.
struct MapExtent {
  std::int64_t rows = 0, columns = 0;
};
/// The cells of `stride` pixels a side that boxes reach into, within the map: at least one.
[[nodiscard]] std::vector<Region> cells_of(std::span<const Box> boxes, std::int64_t stride,
                                           const MapExtent& map);

}  // namespace halfscope
