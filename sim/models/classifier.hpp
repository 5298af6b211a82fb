// The loss of models that give each image one class.
#pragma once

#include <string_view>

#include "sim/models/model.hpp"

namespace halfscope {

/// The cross entropy of `logits` (batch, classes) and the batch's labels. Throws InvalidArgument, with the
/// name of the model, for a batch without a label per image.
[[nodiscard]] BatchOutcome classify(Tape& tape, std::string_view model, TensorRef logits, const Batch& batch);

}  // namespace halfscope
