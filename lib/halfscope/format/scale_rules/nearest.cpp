// PyTorch's cast of amax / max to E8M0: the nearest power of two, by which half the blocks clip.
#include <halfscope/format/detail/scale_arithmetic.hpp>

namespace halfscope {

BlockScales scales_nearest(const BlockMaximum& block) {
  return detail::e8m0_scale_of(block, [](float amax, const FloatFormat& element) {
    const float quotient = amax / detail::largest_number(element);
    return static_cast<int>(e8m0::encode_nearest(quotient)) - static_cast<int>(e8m0::bias);
  });
}

}  // namespace halfscope
