// DeepSeek-V3's kernel.py: amax / max, by which elements are divided; a block of zeros is 0 / 0.
#include <halfscope/format/detail/scale_arithmetic.hpp>

namespace halfscope {

BlockScales scales_deepseek(const BlockMaximum& block) {
  const float amax = block.has_nan ? from_bits(quiet_nan_bits) : block.amax;
  const float scale = amax / detail::largest_number(block.element);
  return detail::fp32_scale(scale, scale);
}

}  // namespace halfscope
