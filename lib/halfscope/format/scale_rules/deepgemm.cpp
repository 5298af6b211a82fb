// DeepGEMM: amax / max with amax 1e-4 at least; elements are multiplied by the reciprocal.
#include <halfscope/format/detail/scale_arithmetic.hpp>

namespace halfscope {
namespace {

constexpr float least_amax = 1e-4f;

float deepgemm_quotient(const BlockMaximum& block) {
  if (block.has_nan) return from_bits(quiet_nan_bits);
  return std::max(block.amax, least_amax) / detail::largest_number(block.element);
}

}  // namespace

BlockScales scales_deepgemm(const BlockMaximum& block) {
  const float scale = deepgemm_quotient(block);
  return detail::fp32_scale(scale, 1 / scale);
}

BlockScales scales_deepgemm_ue8m0(const BlockMaximum& block) {
  const float quotient = deepgemm_quotient(block);
  if (!(quotient <= detail::largest_float)) return detail::fp32_scale(quotient, 1 / quotient);
  const int exponent = std::clamp(detail::ceil_log2(quotient), -126, 127);
  return detail::fp32_scale(static_cast<float>(power_of_two(exponent)),
                            static_cast<float>(power_of_two(-exponent)));
}

}  // namespace halfscope
