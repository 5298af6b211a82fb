// NVFP4 of torchao: scales of 2^-6 at least, so that the elements of small blocks flush.
#include <halfscope/core/host_device.hpp>
#include <halfscope/format/detail/quotients_of.hpp>
#include <halfscope/format/detail/scale_arithmetic.hpp>
#include <halfscope/format/detail/ue4m3_steps.hpp>

namespace halfscope {
namespace {

HALFSCOPE_HD float torchao_quotient(float amax, const TensorFactors& tensor) {
  return std::clamp(amax / detail::largest_e2m1 / tensor.factor, 0x1p-6f, detail::largest_ue4m3);
}

/// In tensors up to 7.9e-36 the quotient overflows: torchao multiplies by infinity, and zeros become NaN. At
/// the largest finite factor they stay zeros.
float torchao_element_factor(float scale, const TensorFactors& tensor) {
  return std::min(1 / tensor.factor / scale, detail::largest_float);
}

}  // namespace

TensorFactors tensor_torchao(float tensor_amax) {
  const float scale = tensor_amax / (detail::largest_e2m1 * detail::largest_ue4m3);
  return {scale, scale == 0 ? 1 : scale};
}

BlockScales scales_torchao(const BlockMaximum& block) {
  const float quotient = torchao_quotient(block.amax, block.tensor);
  return {detail::ue4m3_block(quotient, block.tensor, torchao_element_factor)};
}

detail::Ue4m3Steps detail::steps_torchao() {
  return {quotients_of<torchao_quotient>, torchao_element_factor};
}

}  // namespace halfscope
