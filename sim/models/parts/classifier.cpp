// The cross entropy of one class per image.
#include "sim/models/parts/classifier.hpp"

#include <fmt/format.h>

#include "sim/layers/layers.hpp"

namespace halfscope {
namespace {

constexpr float auxiliary_weight = 0.3f;

}  // namespace

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

BatchOutcome classify(Tape& tape, const Classifier& classifier, TensorRef logits,
                      std::span<const TensorRef> auxiliary, const Batch& batch) {
  BatchOutcome outcome = classify(tape, classifier, logits, batch);
  std::vector<WeightedLoss> losses{{.loss = outcome.loss}};
  for (const TensorRef head : auxiliary) {
    losses.push_back({softmax_cross_entropy(tape, fmt::format("loss_aux{}", losses.size()), head,
                                            batch.labels, classifier.label_smoothing),
                      auxiliary_weight});
  }
  if (losses.size() > 1) outcome.loss = total_loss(tape, "total_loss", losses);
  return outcome;
}

}  // namespace halfscope
