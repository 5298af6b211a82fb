// A model: parameters, the forward pass to a loss, and the metric by which it is judged.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "sim/data/dataset.hpp"
#include "sim/parameter.hpp"
#include "sim/tape.hpp"

namespace halfscope {

/// What one batch gives: the mean loss over the batch, and how many of its examples were right.
struct BatchOutcome {
  TensorRef loss;
  std::int64_t correct = 0;
};

struct Model {
  std::unique_ptr<ParameterStore> store;
  /// Runs the batch forward on the tape; owns nothing but references into `store`.
  std::function<BatchOutcome(Tape& tape, Batch batch)> forward;
};

/// What a model is built for.
struct ModelSpec {
  Shape example_shape;  // (height, width, channel)
  std::int64_t class_count = 0;
  std::uint64_t seed = 0;  ///< of the initial weights
  float batch_norm_epsilon = 1e-5f;
};

}  // namespace halfscope
