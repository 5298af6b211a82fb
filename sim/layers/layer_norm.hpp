// Layer normalisation over the last axis (Ba et al. 2016).
#pragma once

#include "sim/tape.hpp"

namespace halfscope {

/// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, with mean and variance of each row of features.
/// The statistics, in backward the means of the gradients over a row and the sums for gamma and beta, add up
/// as the policy's reduction model for the layer's name says. Everything else is FP32 arithmetic.
struct LayerNormParameters {
  Parameter& gamma;  // (features)
  Parameter& beta;   // (features)
  float epsilon = 1e-5f;
};
TensorRef layer_norm(Tape& tape, const std::string& name, TensorRef x, const LayerNormParameters& parameters);

}  // namespace halfscope
