// Counts a gradient's exponents once, and reads off the share that FP16 flushes to zero at every loss scale.
#include <fmt/format.h>
#include <halfscope/format/catalogue.hpp>
#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/stats/exponent_histogram.hpp>
#include <halfscope/stats/what_if.hpp>

#include <cmath>
#include <cstddef>
#include <vector>

namespace {

/// A gradient of 100,000 elements, magnitudes spread evenly over the binades from 2^-38 to 2^-6.
std::vector<float> sample_gradient() {
  std::vector<float> gradient(100'000);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double place = static_cast<double>(i) / static_cast<double>(gradient.size());
    gradient[i] = static_cast<float>(std::exp2(-38 + 32 * place));
  }
  return gradient;
}

}  // namespace

int main() {
  std::vector<float> gradient = sample_gradient();

  halfscope::ExponentHistogram
      histogram;  // at the edges of FP16; ExponentHistogram(halfscope::bf16) for another format
  histogram.add(gradient);

  fmt::print("log2(scale)  flushed  overflowed\n");
  for (int scale_log2 = 0; scale_log2 <= 24; scale_log2 += 4) {
    const halfscope::WhatIf at = halfscope::what_if(histogram, scale_log2);  // exact, from the counts alone
    fmt::print("{:11}  {:5.2f} %  {:10}\n", scale_log2, 100 * at.flushed_fraction(), at.overflow);
  }

  // The same by rounding: the counts of a cast at scale 2^8.
  std::size_t zeros = 0;
  for (float& x : gradient) x *= 256;
  halfscope::round(gradient, gradient, halfscope::parse_quantizer("fp16"));
  for (const float x : gradient) zeros += x == 0 ? 1 : 0;
  const bool equal = static_cast<std::int64_t>(zeros) == halfscope::what_if(histogram, 8).flushed;
  fmt::print("rounded at 2^8: {} zeros, {} the histogram says\n", zeros, equal ? "as" : "not as");
  return equal ? 0 : 1;
}
