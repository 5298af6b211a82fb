// Perplexity: how many equally likely words a language model is left to guess from.
#pragma once

#include "sim/models/model.hpp"

namespace halfscope {

/// exp of the mean negative log likelihood over all predictions; the loss of a batch is its mean over the
/// batch's labels. Infinite where the likelihood is that small. The
/// accuracy is that of the logits, as `make_accuracy` counts them.
[[nodiscard]] std::unique_ptr<Metric> make_perplexity();

}  // namespace halfscope
