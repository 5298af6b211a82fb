// The cross entropy of one class per image.
#include "sim/models/classifier.hpp"

#include <fmt/format.h>

#include "sim/layers/layers.hpp"

namespace halfscope {

void check_takes_images(std::string_view model, const Shape& example) {
  if (example.size() == 3 && element_count(example) > 0) return;
  throw InvalidArgument(fmt::format("model {} takes images: examples are (height, width, channel), not {}",
                                    model, to_string(example)));
}

BatchOutcome classify(Tape& tape, const Classifier& classifier, TensorRef logits, const Batch& batch) {
  const std::int64_t images = batch.inputs.shape().at(0);
  if (static_cast<std::int64_t>(batch.labels.size()) != images) {
    throw InvalidArgument(fmt::format(
        "model {} wants a label for each image, but {} images came with {} labels; fashion_mnist has them",
        classifier.model, images, batch.labels.size()));
  }
  return {softmax_cross_entropy(tape, "loss", logits, batch.labels, classifier.label_smoothing), {logits}};
}

}  // namespace halfscope
