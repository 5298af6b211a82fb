// NVFP4 of ModelOpt: scales of 2^-9 at least, 1 for zeros; elements are divided.
#include <halfscope/format/detail/scale_arithmetic.hpp>

namespace halfscope {

TensorFactors tensor_modelopt(float tensor_amax) {
  const float scale = tensor_amax / (detail::largest_e2m1 * detail::largest_ue4m3);
  return {scale, scale == 0 ? 1 : scale};
}

BlockScales scales_modelopt(const BlockMaximum& block) {
  const float quotient = block.amax / (detail::largest_e2m1 * block.tensor.factor);
  const float positive = quotient == 0 ? 1 : quotient;
  BlockScale scale = detail::ue4m3_scale(std::clamp(positive, 0x1p-9f, detail::largest_ue4m3));
  scale.factor = scale.value * block.tensor.factor;
  return {scale};
}

}  // namespace halfscope
