// The loss of models that give each image one class.
#pragma once

#include <span>
#include <string_view>

#include "sim/models/model.hpp"

namespace halfscope {

/// Who asks, and by what share the targets are smoothed.
struct Classifier {
  std::string_view model;
  float label_smoothing = 0;
};

/// Throws InvalidArgument, with the name of the model, unless examples of this shape are images (height,
/// width, channel) with pixels in them.
void check_takes_images(std::string_view model, const Shape& example);

/// The cross entropy of `logits` (batch, classes) and the batch's labels. Throws InvalidArgument, with the
/// name of the model, for a batch without a label per image.
[[nodiscard]] BatchOutcome classify(Tape& tape, const Classifier& classifier, TensorRef logits,
                                    const Batch& batch);

/// In training the same plus 0.3 times the cross entropy of each auxiliary head's logits (Szegedy et al.,
/// CVPR 2015, section 5); an evaluation has none.
[[nodiscard]] BatchOutcome classify(Tape& tape, const Classifier& classifier, TensorRef logits,
                                    std::span<const TensorRef> auxiliary, const Batch& batch);

}  // namespace halfscope
