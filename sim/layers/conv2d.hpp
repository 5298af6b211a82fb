// Square convolution over images with a border of zeros; with stride 1 they keep their size.
#pragma once

#include "sim/tape.hpp"

namespace halfscope {

/// A kernel of odd size: 1x1, 3x3, ...
struct Conv2dParameters {
  Parameter& weight;          // (size, size, in, out)
  Parameter* bias = nullptr;  // (out)
  std::int64_t stride =
      1;  ///< of both axes: every stride-th row and column is computed, the first among them
};

/// y (batch, height / stride, width / stride, out), its extents rounded up, = x (batch, height, width, in)
/// convolved with the weight, plus the bias where there is one. Each output is one sum over (row, column, in)
/// of the kernel, in that order, with the bias added last in FP32 before the one rounding. Each number of x's
/// gradient is one sum over (row, column, out), the zeros between the strides among its terms.
TensorRef conv2d(Tape& tape, const std::string& name, TensorRef x, const Conv2dParameters& parameters);

}  // namespace halfscope
