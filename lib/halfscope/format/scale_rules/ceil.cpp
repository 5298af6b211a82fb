// torchao's CEIL: amax up to a power of two, which becomes the least number of the elements' largest binade.
#include <halfscope/format/detail/scale_arithmetic.hpp>

namespace halfscope {

BlockScales scales_ceil(const BlockMaximum& block) {
  return detail::e8m0_scale_of(block, [](float amax, const FloatFormat& element) {
    return detail::ceil_log2(amax) - element.max_exponent();
  });
}

}  // namespace halfscope
