// TransformerEngine's blockwise FP8: the factor max / amax, and its reciprocal as the scale. Zeros and an
// infinity have the factor 1, NaNs are left out.
#include <halfscope/format/detail/scale_arithmetic.hpp>

namespace halfscope {
namespace {

float te_factor(const BlockMaximum& block) {
  if (block.amax == 0 || block.amax > detail::largest_float) return 1;
  return std::min(detail::largest_number(block.element) / block.amax, detail::largest_float);
}

}  // namespace

BlockScales scales_te(const BlockMaximum& block) {
  const float factor = te_factor(block);
  return detail::fp32_scale(1 / factor, factor);
}

BlockScales scales_te_pow2(const BlockMaximum& block) {
  const float factor = from_bits(to_bits(te_factor(block)) & infinity_bits);
  return detail::fp32_scale(1 / factor, factor);
}

}  // namespace halfscope
