// Binary cross entropy of logits, averaged over all of them.
#pragma once

#include "sim/tape.hpp"

namespace halfscope {

/// A scalar: the mean over all elements of -t log sigmoid(x) - (1 - t) log(1 - sigmoid(x)) for logits x and
/// targets t in [0, 1] of the same shape, in FP32 and without overflow for any x. The logits' gradient is
/// (sigmoid(x) - t) / elements times the loss's own. Throws InvalidArgument where the shapes differ.
TensorRef sigmoid_cross_entropy(Tape& tape, const std::string& name, TensorRef logits, Array targets);

}  // namespace halfscope
