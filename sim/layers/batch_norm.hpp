// Batch normalisation over all axes but the last (Ioffe & Szegedy 2015).
#pragma once

#include "sim/tape.hpp"

namespace halfscope {

/// The statistics (mean, variance; in backward the sums of gradients) are reductions over every position of
/// the batch: they add up as the policy's reduction model for the layer's name says. Everything else is FP32
/// arithmetic.
struct BatchNormParameters {
  Parameter& gamma;          // (channels)
  Parameter& beta;           // (channels)
  Buffer& running_mean;      // (channels)
  Buffer& running_variance;  // (channels)
  float epsilon = 1e-5f;
  float running_momentum = 0.1f;  ///< weight of the newest batch in the running statistics
};
TensorRef batch_norm(Tape& tape, const std::string& name, TensorRef x, const BatchNormParameters& parameters);

}  // namespace halfscope
