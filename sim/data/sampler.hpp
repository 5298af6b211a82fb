// The order of the minibatches: a pure function of seed, step and batch size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/data/dataset.hpp"

namespace halfscope {

/// Each epoch visits the examples in a fresh random order, cut into minibatches; an incomplete last one is
/// dropped. Minibatches of neighbours begin at a random example each instead. Steps can be asked for in any
/// order, so a resumed run continues where the unbroken one would be.
class Sampler {
 public:
  /// Throws InvalidArgument unless 1 <= batch_size <= example_count < 2^32.
  Sampler(std::int64_t example_count, std::int64_t batch_size, std::uint64_t seed,
          BatchOrder order = BatchOrder::shuffled);

  /// The examples of step `step`, counted from 0; valid until the next call. Throws InvalidArgument if it is
  /// negative.
  [[nodiscard]] std::span<const std::int64_t> indices(std::int64_t step);

  [[nodiscard]] std::int64_t steps_per_epoch() const {
    return static_cast<std::int64_t>(order_.size()) / batch_size_;
  }

 private:
  void shuffle(std::int64_t epoch);
  [[nodiscard]] std::int64_t random_start(std::int64_t step) const;

  std::vector<std::int64_t> order_;  // places of the examples in epoch_
  std::int64_t batch_size_;
  std::uint64_t seed_;
  BatchOrder batch_order_;
  std::int64_t epoch_ = -1;
};

}  // namespace halfscope
