// Softmax with cross entropy over the rows of a matrix.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/arithmetic/accumulate.hpp>

namespace halfscope {

/// For logits (rows, classes) and labels (rows, each in [0, classes)): probability[r, c] = softmax, and
/// row_loss[r] = -log(probability of the label), from the row's maximum m and log of the sum of e^(x - m).
/// The sum adds up as `model` says; everything else is FP32. Throws RequestError for a label out of range.
void softmax_cross_entropy(std::span<const float> logits, std::span<const std::int32_t> labels,
                           const AccumulateModel& model, std::span<float> probability,
                           std::span<float> row_loss);

/// probability becomes the gradient of the logits: (probability - one_hot(label)) * factor.
void softmax_cross_entropy_gradient(std::span<const std::int32_t> labels, float factor,
                                    std::span<float> probability);

}  // namespace halfscope
