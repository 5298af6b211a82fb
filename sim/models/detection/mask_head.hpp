// The mask head of a two-stage detector: which cells of its box an object shows in.
#pragma once

#include <optional>

#include "sim/data/dataset.hpp"
#include "sim/models/detection/region_targets.hpp"
#include "sim/models/parts/convolution.hpp"

namespace halfscope {

struct MaskHead {
  Convolution inner, outer, masks;
  std::int64_t class_count = 0;
};
/// Parameters of a head that sees `channels` channels of the feature map.
[[nodiscard]] MaskHead add_mask_head(ParameterStore& store, const ModelSpec& spec, std::int64_t channels);

/// A scalar: the mean binary cross entropy over the cells of the regions with an object, each judged by the
/// logits of its own class; empty without such a region. features: (batch, height / stride, width / stride,
/// channels). Throws InvalidArgument for a batch without a mask per pixel.
[[nodiscard]] std::optional<TensorRef> mask_loss(Tape& tape, TensorRef features, std::int64_t stride,
                                                 const MaskHead& head, const RegionTargets& regions,
                                                 const Batch& batch);

/// Labels of a batch's pixels, as `Batch::masks` has them.
struct PixelLabels {
  std::span<const std::int32_t> values;  // (batch, height, width)
  std::int64_t height = 0, width = 0;
};
/// (size * size, row by row) of a box: 1 where the pixel in the middle of the cell is `label`, else 0.
[[nodiscard]] std::vector<float> mask_of_box(const Box& box, std::int32_t label, const PixelLabels& pixels,
                                             std::int64_t size);

}  // namespace halfscope
