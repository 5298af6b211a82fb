// Softmax with cross entropy, averaged over the batch: the loss of a classifier.
#pragma once

#include <span>

#include "sim/tape.hpp"

namespace halfscope {

/// A scalar: the mean over rows of -log softmax(logits)[label], in FP32 but for the sum of exponentials,
/// which adds up as the policy's reduction model for the layer's name says; an evaluation adds up in FP32, so
/// that it measures the weights and not its own sums. The logits' gradient is (softmax
/// - one_hot) / rows times the loss's own.
TensorRef softmax_cross_entropy(Tape& tape, const std::string& name, TensorRef logits,
                                std::span<const std::int32_t> labels);

}  // namespace halfscope
