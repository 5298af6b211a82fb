// Fully connected layer.
#pragma once

#include "sim/tape.hpp"

namespace halfscope {

/// y (batch, out) = x (batch, in) weight (in, out) + bias (out). x may have more axes: they are flattened.
struct LinearParameters {
  Parameter& weight;
  Parameter& bias;
};
TensorRef linear(Tape& tape, const std::string& name, TensorRef x, LinearParameters parameters);

}  // namespace halfscope
