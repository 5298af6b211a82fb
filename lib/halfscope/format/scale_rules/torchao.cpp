// NVFP4 of torchao: scales of 2^-6 at least, so that the elements of small blocks flush.
#include <halfscope/format/detail/scale_arithmetic.hpp>

namespace halfscope {

TensorFactors tensor_torchao(float tensor_amax) {
  const float scale = tensor_amax / (detail::largest_e2m1 * detail::largest_ue4m3);
  return {scale, scale == 0 ? 1 : scale};
}

BlockScales scales_torchao(const BlockMaximum& block) {
  const float quotient = block.amax / detail::largest_e2m1 / block.tensor.factor;
  BlockScale scale = detail::ue4m3_scale(std::clamp(quotient, 0x1p-6f, detail::largest_ue4m3));
  scale.factor = 1 / block.tensor.factor / scale.value;
  return {scale};
}

}  // namespace halfscope
