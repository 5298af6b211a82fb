// Moves the ends of a window by the binades that averaging takes.
#include <halfscope/scaling/averaging.hpp>

#include <algorithm>
#include <cmath>

namespace halfscope {
namespace {

/// Logarithm of `factor`, or of the next power of two above it; 0 for a factor below 1, which takes nothing.
int binades_of(double factor) {
  return std::max(0, static_cast<int>(std::ceil(std::log2(factor))));
}

}  // namespace

Averaging averaging_of(const GradientDivision& division, std::int64_t ranks) {
  if (division.rule == nullptr) return {ranks, division.factor};
  const DivisionStep before = division_steps(division, ranks, fp32).before;
  switch (before.kind) {
    case DivisionStep::Kind::none:
      return {ranks, 1};
    case DivisionStep::Kind::divide:
      return {ranks, double{before.constant}};
    case DivisionStep::Kind::multiply:
    case DivisionStep::Kind::multiply_rounded:
      break;
  }
  return {ranks, static_cast<double>(ranks)};  // every rule that multiplies before does so by 1/N
}

TensorFit averaged(TensorFit fit, const Averaging& averaging) {
  if (fit.any_scale) return fit;
  fit.underflow_low += binades_of(averaging.predivide);
  fit.overflow_high -= binades_of(static_cast<double>(averaging.ranks) / averaging.predivide);
  return fit;
}

}  // namespace halfscope
