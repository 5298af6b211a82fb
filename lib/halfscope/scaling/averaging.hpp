// The loss scales that fit a gradient once it is averaged over ranks.
#pragma once

#include <cstdint>

#include <halfscope/arithmetic/gradient_division.hpp>
#include <halfscope/scaling/advisor.hpp>

namespace halfscope {

/// Data-parallel training: gradients of `ranks` ranks are divided before their sum by `predivide`, f.
struct Averaging {
  std::int64_t ranks = 1;
  double predivide = 1;
};

/// The averaging of a division on so many ranks.
[[nodiscard]] Averaging averaging_of(const GradientDivision& division, std::int64_t ranks);

/// The fit of a gradient whose addends and sums are in the format of `fit`, in the worst case: all ranks have
/// equal gradients g. An addend is flushed as g / f is, and a sum overflows as g N / f does; g itself is in
/// the format before. f and N / f are rounded up to powers of two. The window loses log2(N) binades, and f
/// says at which end.
[[nodiscard]] TensorFit averaged(TensorFit fit, const Averaging& averaging);

}  // namespace halfscope
