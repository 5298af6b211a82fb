// Gradients of a step's micro-batches, added up before the step's one update.
#pragma once

#include <vector>

#include <halfscope/format/quantizer.hpp>

#include "sim/tape/parameter.hpp"

namespace halfscope {

/// Sums in a format of their own: FP32, as autocast leaves them in `.grad`, or FP16, as a network whose
/// gradients are FP16 does. Each sum is of the numbers in FP32, rounded at every add; the first gradient is
/// rounded too.
class GradientSum {
 public:
  explicit GradientSum(const Quantizer& format) : format_(format) {}

  /// Takes every parameter's gradient, in the order of the micro-batches. All of them still carry the loss
  /// scale.
  void add(ParameterStore& store);
  /// Gives the parameters their sums, and begins anew.
  void finish(ParameterStore& store);

 private:
  Quantizer format_;
  std::vector<Array> sums_;
};

}  // namespace halfscope
