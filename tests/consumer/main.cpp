// Uses the installed library: rounds an array, counts its exponents, asks what a loss scale would save, and
// computes with numbers of a format.
#include <halfscope/arithmetic/number.hpp>
#include <halfscope/format/catalogue.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/stats/exponent_histogram.hpp>
#include <halfscope/stats/what_if.hpp>

#include <cstdio>
#include <vector>

int main() {
  using namespace halfscope;
  const std::vector<float> gradients{1.0f, 0x1p-26f, 65520.0f, 1.0009765f};
  std::vector<float> rounded(gradients.size());
  round(gradients, rounded, parse_quantizer("fp16/saturate"));
  ExponentHistogram histogram;
  histogram.add(gradients);
  const bool right = rounded == std::vector<float>{1.0f, 0.0f, 65504.0f, 1.0009765625f} &&
                     round(65520.0f, Quantizer{fp16}) > 65504.0f && what_if(histogram, 0).flushed == 1 &&
                     what_if(histogram, 8).flushed == 0 && what_if(histogram, 0).overflow == 1 &&
                     static_cast<float>(Number<Quantizer{fp16}>(2048) + Number<Quantizer{fp16}>(1)) == 2048;
  std::puts(right ? "right" : "wrong");
  return right ? 0 : 1;
}
