// The losses: scalars at the end of a tape, one declaration each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/nn/ctc.hpp"
#include "sim/tape/tape.hpp"

namespace halfscope {

/// A scalar: the mean over rows of -log softmax(logits)[label], in FP32 but for the sum of exponentials,
/// which adds up as the policy's reduction model for the layer's name says; an evaluation adds up in FP32, so
/// that it measures the weights and not its own sums. The logits' gradient is (softmax
/// - one_hot) / rows times the loss's own. In training the targets are smoothed: `smoothing` of a uniform
/// distribution and 1 - smoothing of the label, computed in FP32. Throws InvalidArgument for a label out of
/// range and unless 0 <= smoothing < 1.
TensorRef softmax_cross_entropy(Tape& tape, const std::string& name, TensorRef logits,
                                std::span<const std::int32_t> labels, float smoothing = 0);

/// A scalar: the mean over all elements of -t log sigmoid(x) - (1 - t) log(1 - sigmoid(x)) for logits x and
/// targets t in [0, 1] of the same shape, in FP32 and without overflow for any x. The logits' gradient is
/// (sigmoid(x) - t) / elements times the loss's own. Throws InvalidArgument where the shapes differ.
TensorRef sigmoid_cross_entropy(Tape& tape, const std::string& name, TensorRef logits, Array targets);

/// A scalar: the mean over all elements of -t log p - (1 - t) log(1 - p) for probabilities p, as a format has
/// stored them, and targets t in [0, 1] of the same shape; a logarithm below -100 is -100, as in PyTorch. The
/// gradient of p is (p - t) / max(p (1 - p), 1e-12) / elements times the loss's own, which exceeds FP16 where
/// a probability has been rounded to the wrong one of 0 and 1: `sigmoid_cross_entropy` has no such place. All
/// in FP32. Throws InvalidArgument where the shapes differ or have no elements.
TensorRef binary_cross_entropy(Tape& tape, const std::string& name, TensorRef probability, Array targets);

/// A scalar: the mean over utterances of -log of the likelihood that logits (time, batch, labels) give their
/// labels (Graves et al., ICML 2006), summed over all paths in log space. Label 0 is the blank. Sums are
/// FP32; the path likelihoods that they are made of, alpha and beta, are stored in the format of the policy's
/// reduction model for the layer's name, in an evaluation in FP32. Throws InvalidArgument for labels, counts
/// or frames that do not fit the logits, and for an utterance with fewer frames than its labels need.
TensorRef ctc_loss(Tape& tape, const std::string& name, TensorRef logits, const LabelSequences& targets);

/// Targets for some rows of x (rows, columns).
struct RowTargets {
  std::vector<std::int64_t> rows;  ///< which, each once; none is allowed
  Array values;                    // (rows.size(), columns), on the active device
  float denominator = 1;           ///< divides the sum; above 0
};

/// A scalar: the sum over the rows that have a target and over their columns, divided by the denominator, of
/// d^2 / 2 where |d| < 1 and |d| - 1/2 elsewhere, d = x - target. All in FP32. Throws InvalidArgument for a
/// row that x does not have or that comes twice, for values of another shape and for a denominator that is
/// not above 0.
TensorRef smooth_l1(Tape& tape, const std::string& name, TensorRef x, RowTargets targets);

/// A scalar: temperature^2 times the mean over rows of sum p log(p / q), the divergence between the
/// distributions p = softmax(teacher_logits / temperature) and q = softmax(logits / temperature) over the
/// classes (Hinton et al., 2015), both matrices (rows, classes). The logits' gradient is temperature (q - p)
/// / rows times the loss's own; the teacher has none. In FP32 but for the sum of q's exponentials, which adds
/// up as in `softmax_cross_entropy`. Throws InvalidArgument where the shapes differ or have no rows, and for
/// a temperature that is not above 0.
TensorRef distillation_loss(Tape& tape, const std::string& name, TensorRef logits,
                            const Array& teacher_logits, float temperature);

/// A scalar: the mean over rows of 1 - cos(x, target), of x and targets (rows, columns), in FP32. To each
/// squared norm 1e-12 is added, as PyTorch does. Throws InvalidArgument where the shapes differ or have no
/// rows.
TensorRef cosine_embedding_loss(Tape& tape, const std::string& name, TensorRef x, Array targets);

/// A scalar: the sum of the scalars `losses`, in FP32 as each of them is. Throws InvalidArgument for none and
/// for one that is no scalar.
TensorRef total_loss(Tape& tape, const std::string& name, std::span<const TensorRef> losses);

/// A term of a sum of losses.
struct WeightedLoss {
  TensorRef loss;
  float weight = 1;
};
/// The sum of weight * loss, each product and each sum rounded to FP32, in the order of `losses`. Each loss's
/// gradient is its weight times that of the sum. Throws as the sum without weights does, and for a weight
/// that is not finite.
TensorRef total_loss(Tape& tape, const std::string& name, std::span<const WeightedLoss> losses);

}  // namespace halfscope
