// AMD Quark's and torchao's EVEN: the binade of amax once it has been rounded to the elements' significand.
#include <halfscope/format/detail/scale_arithmetic.hpp>

namespace halfscope {

BlockScales scales_even(const BlockMaximum& block) {
  return detail::e8m0_scale_of(block, [](float amax, const FloatFormat& element) {
    const int exponent = detail::floor_log2(amax);
    const double significand = double{amax} / power_of_two(exponent);
    const bool rounds_up = significand >= 2 - power_of_two(-element.mantissa_bits - 1);
    const int rounded = exponent + (rounds_up ? 1 : 0) - element.max_exponent();
    // A finite block near FP32's largest number stays finite.
    return rounded > 127 ? 127 : rounded;
  });
}

}  // namespace halfscope
