// The cross entropy of one class per image.
#include "sim/models/classifier.hpp"

#include <fmt/format.h>

#include "sim/layers/layers.hpp"

namespace halfscope {

BatchOutcome classify(Tape& tape, std::string_view model, TensorRef logits, const Batch& batch) {
  const std::int64_t images = batch.inputs.shape().at(0);
  if (static_cast<std::int64_t>(batch.labels.size()) != images) {
    throw InvalidArgument(fmt::format(
        "model {} wants a label for each image, but {} images came with {} labels; fashion_mnist has them",
        model, images, batch.labels.size()));
  }
  return {softmax_cross_entropy(tape, "loss", logits, batch.labels), {logits}};
}

}  // namespace halfscope
