// NVFP4 of ModelOpt: scales of 2^-9 at least, 1 for zeros; elements are divided.
#include <halfscope/core/host_device.hpp>
#include <halfscope/format/detail/quotients_of.hpp>
#include <halfscope/format/detail/scale_arithmetic.hpp>
#include <halfscope/format/detail/ue4m3_steps.hpp>

namespace halfscope {
namespace {

HALFSCOPE_HD float modelopt_quotient(float amax, const TensorFactors& tensor) {
  const float quotient = amax / (detail::largest_e2m1 * tensor.factor);
  const float positive = quotient == 0 ? 1 : quotient;
  return std::clamp(positive, 0x1p-9f, detail::largest_ue4m3);
}

float modelopt_element_factor(float scale, const TensorFactors& tensor) {
  return scale * tensor.factor;
}

}  // namespace

TensorFactors tensor_modelopt(float tensor_amax) {
  const float scale = tensor_amax / (detail::largest_e2m1 * detail::largest_ue4m3);
  return {scale, scale == 0 ? 1 : scale};
}

BlockScales scales_modelopt(const BlockMaximum& block) {
  const float quotient = modelopt_quotient(block.amax, block.tensor);
  return {detail::ue4m3_block(quotient, block.tensor, modelopt_element_factor)};
}

detail::Ue4m3Steps detail::steps_modelopt() {
  return {quotients_of<modelopt_quotient>, modelopt_element_factor};
}

}  // namespace halfscope
