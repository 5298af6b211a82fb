// Masks of regions, and their loss.
#include "sim/models/detection/mask_head.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/layers/layers.hpp"

namespace halfscope {
namespace {

constexpr std::int64_t pooled_size = 4, mask_size = 2 * pooled_size, mask_cells = mask_size * mask_size;
constexpr std::int64_t inner_channels = 64, outer_channels = 32;

/// The pixel in the middle of cell i of `cells` between two edges; the image's first for a NaN.
std::int64_t middle_pixel(std::int64_t i, std::int64_t cells, float low, float high, std::int64_t extent) {
  const float share = (static_cast<float>(i) + 0.5f) / static_cast<float>(cells);
  const float at = low + share * (high - low);
  return at > 0 ? static_cast<std::int64_t>(std::min(at, static_cast<float>(extent - 1))) : 0;
}

PixelLabels pixels_of(const Batch& batch) {
  if (batch.masks.size() != batch.inputs.size() / static_cast<std::size_t>(batch.inputs.shape().back())) {
    throw InvalidArgument(
        fmt::format("model mask_rcnn wants a mask label per pixel, but the data set has {} for {} images; "
                    "detection_scenes has them",
                    batch.masks.size(), batch.inputs.extent(0)));
  }
  return {batch.masks, batch.inputs.extent(1), batch.inputs.extent(2)};
}

/// The regions with an object, in their order.
std::vector<Box> shown_boxes(const RegionTargets& regions) {
  std::vector<Box> boxes;
  for (const std::int64_t row : regions.matched)
    boxes.push_back(regions.boxes[static_cast<std::size_t>(row)]);
  return boxes;
}

}  // namespace

MaskHead add_mask_head(ParameterStore& store, const ModelSpec& spec, std::int64_t channels) {
  const auto add = [&](const char* name, std::int64_t size, std::int64_t in, std::int64_t out, float gain) {
    return add_convolution(store, spec, {.name = name, .size = size, .in = in, .out = out, .gain = gain});
  };
  return {.inner = add("mask_inner", 3, channels, inner_channels, 1),
          .outer = add("mask_outer", 3, inner_channels, outer_channels, 1),
          .masks = add("masks", 1, outer_channels, spec.class_count, 0.5f),
          .class_count = spec.class_count};
}

std::vector<float> mask_of_box(const Box& box, std::int32_t label, const PixelLabels& pixels,
                               std::int64_t size) {
  const std::int64_t image = box.example * pixels.height * pixels.width;
  std::vector<float> mask;
  for (std::int64_t i = 0; i < size * size; ++i) {
    const std::int64_t row = middle_pixel(i / size, size, box.top, box.bottom, pixels.height);
    const std::int64_t column = middle_pixel(i % size, size, box.left, box.right, pixels.width);
    const std::int32_t shown = pixels.values[static_cast<std::size_t>(image + row * pixels.width + column)];
    mask.push_back(shown == label ? 1.0f : 0.0f);
  }
  return mask;
}

std::optional<TensorRef> mask_loss(Tape& tape, TensorRef features, std::int64_t stride, const MaskHead& head,
                                   const RegionTargets& regions, const Batch& batch) {
  const PixelLabels pixels = pixels_of(batch);
  const std::vector<Box> boxes = shown_boxes(regions);
  if (boxes.empty()) return std::nullopt;
  const Shape& map = tape.value(features).shape();
  const std::vector<Region> cells = cells_of(boxes, stride, {map.at(1), map.at(2)});
  TensorRef x = roi_max_pool(tape, "mask_pool", features, {cells, pooled_size});
  x = upsample_nearest(tape, "mask_upsample", convolve_relu(tape, x, head.inner), 2);
  x = convolve(tape, convolve_relu(tape, x, head.outer), head.masks);

  std::vector<std::int32_t> own;  // the logits of a region's class, cell by cell
  std::vector<float> targets;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const std::int32_t label = regions.labels[static_cast<std::size_t>(regions.matched[i])];
    for (std::int64_t cell = 0; cell < mask_cells; ++cell) {
      const std::int64_t row = static_cast<std::int64_t>(i) * mask_cells + cell;
      own.push_back(static_cast<std::int32_t>(row * head.class_count + label - 1));
    }
    const std::vector<float> mask = mask_of_box(boxes[i], label, pixels, mask_size);
    targets.insert(targets.end(), mask.begin(), mask.end());
  }
  const TensorRef logits = take_rows(tape, "mask_logits", x, {own, 1});
  Array target({static_cast<std::int64_t>(targets.size()), 1}, Device::cpu);
  std::ranges::copy(targets, target.data());
  return sigmoid_cross_entropy(tape, "mask_loss", logits, target.to(active_device()));
}

}  // namespace halfscope
