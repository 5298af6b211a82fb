// Square convolution with stride 1 and a border of zeros, so that images keep their size.
#pragma once

#include "sim/tape.hpp"

namespace halfscope {

/// A kernel of odd size: 1x1, 3x3, ...
struct Conv2dParameters {
  Parameter& weight;          // (size, size, in, out)
  Parameter* bias = nullptr;  // (out)
};

/// y (batch, height, width, out) = x (batch, height, width, in) convolved with the weight, plus the bias
/// where there is one. Each output is one sum over (row, column, in) of the kernel, in that order, with the
/// bias added last in FP32 before the one rounding.
TensorRef conv2d(Tape& tape, const std::string& name, TensorRef x, const Conv2dParameters& parameters);

}  // namespace halfscope
