// 3x3 convolution with stride 1 and a border of zeros, so that images keep their size.
#pragma once

#include "sim/tape.hpp"

namespace halfscope {

/// y (batch, height, width, out) = x (batch, height, width, in) convolved with weight (3, 3, in, out),
/// without a bias. Each output is one sum over (row, column, in) of the kernel, in that order.
TensorRef conv2d(Tape& tape, const std::string& name, TensorRef x, Parameter& weight);

}  // namespace halfscope
