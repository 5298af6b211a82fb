// Smooth L1: the loss of a detector's box offsets (Girshick, "Fast R-CNN", ICCV 2015, eq. 3).
#pragma once

#include "sim/tape.hpp"

namespace halfscope {

/// What some rows of x (rows, columns) should be.
struct RowTargets {
  std::vector<std::int64_t> rows;  ///< which, each once; none is allowed
  Array values;                    // (rows.size(), columns), on the active device
  float denominator = 1;           ///< what the sum is divided by, above 0
};

/// A scalar: the sum over the rows that have a target and over their columns, divided by the denominator, of
/// d^2 / 2 where |d| < 1 and |d| - 1/2 elsewhere, d = x - target. All in FP32. Throws InvalidArgument for a
/// row that x does not have or that comes twice, for values of another shape and for a denominator that is
/// not above 0.
TensorRef smooth_l1(Tape& tape, const std::string& name, TensorRef x, RowTargets targets);

}  // namespace halfscope
