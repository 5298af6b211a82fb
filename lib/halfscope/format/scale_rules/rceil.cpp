// cuBLAS's, TransformerEngine's and torchao's RCEIL: amax over the elements' largest number, up to a power of
// two.
#include <halfscope/format/detail/scale_arithmetic.hpp>

namespace halfscope {

BlockScales scales_rceil(const BlockMaximum& block) {
  return detail::e8m0_scale_of(block, [](float amax, const FloatFormat& element) {
    const float reciprocal = 1 / detail::largest_number(element), quotient = amax * reciprocal;
    return quotient == 0 ? -127 : detail::ceil_log2(quotient);
  });
}

}  // namespace halfscope
