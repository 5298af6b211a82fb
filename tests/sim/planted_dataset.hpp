// The small data set with one example whose pixels are far too large: what overflows, and when, is known.
#pragma once

#include "sim/data/sampler.hpp"
#include "tests/sim/small_dataset.hpp"

namespace halfscope {

class PlantedDataset final : public Dataset {
 public:
  PlantedDataset(std::int64_t example, float factor) : example_(example), factor_(factor) {}
  [[nodiscard]] std::int64_t size(Split split) const override { return small_.size(split); }
  [[nodiscard]] Shape example_shape() const override { return small_.example_shape(); }
  [[nodiscard]] std::int64_t class_count() const override { return small_.class_count(); }
  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    Batch batch = small_.batch(split, indices);
    for (std::size_t i = 0; i < indices.size() * 64; ++i) {
      if (indices[i / 64] == example_) batch.inputs[i] *= factor_;
    }
    return batch;
  }

  /// The first step, from 1, whose batch holds the planted example.
  [[nodiscard]] std::int64_t first_step(std::int64_t batch, std::uint64_t seed) const {
    Sampler sampler(size(Split::train), batch, seed);
    for (std::int64_t step = 0;; ++step) {
      for (const std::int64_t index : sampler.indices(step)) {
        if (index == example_) return step + 1;
      }
    }
  }

 private:
  SmallDataset small_;
  std::int64_t example_;
  float factor_;
};

}  // namespace halfscope
