// A data set that a detector or a segmentation can learn in a second.
#pragma once

#include "sim/data/dataset.hpp"

namespace halfscope {

/// Content of a test's images.
enum class Show : std::uint8_t { boxes, nothing, far_boxes };

/// Images of 32x32 with one bright square of 20 in a corner, whose class is the corner's.
class Corners final : public Dataset {
 public:
  explicit Corners(Show show = Show::boxes, std::int32_t first_label = 0)
      : show_(show), first_label_(first_label) {}
  [[nodiscard]] std::int64_t size(Split split) const override { return split == Split::train ? 32 : 12; }
  [[nodiscard]] Shape example_shape() const override { return {32, 32, 1}; }
  [[nodiscard]] std::int64_t class_count() const override { return 4; }
  [[nodiscard]] Batch batch(Split, std::span<const std::int64_t> indices) const override {
    Batch batch{.inputs = Array::zeros({static_cast<std::int64_t>(indices.size()), 32, 32, 1})};
    for (std::size_t n = 0; n < indices.size(); ++n) {
      const auto corner = static_cast<std::int32_t>(indices[n] % 4);
      const std::int32_t top = corner / 2 * 12, left = corner % 2 * 12;
      for (std::int32_t i = 0; i < 400; ++i)
        batch.inputs[n * 1024 + static_cast<std::size_t>((top + i / 20) * 32 + left + i % 20)] = 1;
      const float away = show_ == Show::far_boxes ? 1e6f : 0;
      const auto at = [&](std::int32_t pixel) { return static_cast<float>(pixel) + away; };
      if (show_ == Show::nothing) continue;
      batch.boxes.push_back({static_cast<std::int32_t>(n), first_label_ + corner, at(top), at(left),
                             at(top + 20), at(left + 20)});
    }
    for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
      const auto corner = static_cast<std::int32_t>(indices[i / 1024] % 4);
      batch.masks.push_back(batch.inputs[i] > 0 ? first_label_ + corner + 1 : 0);
    }
    return batch;
  }

 private:
  Show show_;
  std::int32_t first_label_;
};

/// The same with a label per pixel: 0 or 1 + the corner, or one per image.
class CornerPixels final : public Dataset {
 public:
  explicit CornerPixels(std::int64_t pixels_per_label) : pixels_per_label_(pixels_per_label) {}
  [[nodiscard]] std::int64_t size(Split split) const override { return corners_.size(split); }
  [[nodiscard]] Shape example_shape() const override { return corners_.example_shape(); }
  [[nodiscard]] std::int64_t class_count() const override { return 5; }
  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    Batch batch = corners_.batch(split, indices);
    for (std::size_t i = 0; i < batch.inputs.size(); i += static_cast<std::size_t>(pixels_per_label_))
      batch.labels.push_back(batch.inputs[i] > 0 ? batch.boxes[i / 1024].label + 1 : 0);
    batch.boxes.clear();
    return batch;
  }

 private:
  Corners corners_;
  std::int64_t pixels_per_label_;
};

}  // namespace halfscope
