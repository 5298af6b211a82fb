// The rule of OCP MX 1.0, 6.3: the largest number's binade becomes the largest binade of the elements.
#include <halfscope/format/detail/scale_arithmetic.hpp>

namespace halfscope {

BlockScales scales_floor(const BlockMaximum& block) {
  return detail::e8m0_scale_of(block, [](float amax, const FloatFormat& element) {
    return detail::floor_log2(amax) - element.max_exponent();
  });
}

}  // namespace halfscope
