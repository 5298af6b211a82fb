// A data set that a test can learn in a second: 8x8 images whose bright quarter is the label.
#pragma once

#include <halfscope/core/random.hpp>

#include "sim/data/dataset.hpp"

namespace halfscope {

class SmallDataset final : public Dataset {
 public:
  [[nodiscard]] std::int64_t size(Split split) const override { return split == Split::train ? 96 : 40; }
  [[nodiscard]] Shape example_shape() const override { return {8, 8, 1}; }
  [[nodiscard]] std::int64_t class_count() const override { return 4; }
  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    Batch batch{.inputs = Array({static_cast<std::int64_t>(indices.size()), 8, 8, 1})};
    float* pixel = batch.inputs.data();
    for (const std::int64_t index : indices) {
      const auto label = static_cast<std::int32_t>(index % 4);
      batch.labels.push_back(label);
      const RandomStream noise{static_cast<std::uint64_t>(index), static_cast<std::uint32_t>(split), 0};
      for (int i = 0; i < 64; ++i) {
        const bool bright = (i / 32) == label / 2 && (i % 8) / 4 == label % 2;
        *pixel++ = (bright ? 1.0f : -0.5f) + noise.uniform(static_cast<std::uint64_t>(i));
      }
    }
    return batch;
  }
};

}  // namespace halfscope
