// Fully connected layer.
#pragma once

#include "sim/tape.hpp"

namespace halfscope {

/// y = x weight (in, out) + bias (out). Where x's last axis is `in` long, y is (leading axes of x, out), so
/// that a sequence (time, batch, in) gives (time, batch, out); else all axes after the first are flattened
/// and y is (batch, out).
struct LinearParameters {
  Parameter& weight;
  Parameter& bias;
};
TensorRef linear(Tape& tape, const std::string& name, TensorRef x, LinearParameters parameters);

}  // namespace halfscope
