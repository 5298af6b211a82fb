// A text of random words, for language models in tests.
#pragma once

#include <halfscope/core/random.hpp>

#include "sim/data/dataset.hpp"

namespace halfscope {

/// Random words of a vocabulary of 20, five at a time.
class FewWords final : public Dataset {
 public:
  [[nodiscard]] std::int64_t size(Split) const override { return 40; }
  [[nodiscard]] Shape example_shape() const override { return {5}; }
  [[nodiscard]] std::int64_t class_count() const override { return 20; }
  [[nodiscard]] Batch batch(Split, std::span<const std::int64_t> indices) const override {
    Batch batch;
    for (const std::int64_t index : indices) {
      for (std::int64_t t = 0; t < 6; ++t) {
        const auto word =
            static_cast<std::int32_t>(RandomStream{7}.bits(static_cast<std::uint64_t>(5 * index + t)) % 20);
        if (t < 5) batch.tokens.push_back(word);
        if (t > 0) batch.labels.push_back(word);
      }
    }
    return batch;
  }
};

}  // namespace halfscope
