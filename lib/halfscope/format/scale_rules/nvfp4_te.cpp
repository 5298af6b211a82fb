// NVFP4 of TransformerEngine: the block's scale in units of the tensor's, to the nearest E4M3, zero included.
#include <halfscope/core/host_device.hpp>
#include <halfscope/format/detail/quotients_of.hpp>
#include <halfscope/format/detail/scale_arithmetic.hpp>
#include <halfscope/format/detail/ue4m3_steps.hpp>

namespace halfscope {
namespace {

/// 6 times the largest scale over amax; 1 where that is no positive number.
TensorFactors te_tensor(float amax, float largest) {
  const float factor = std::min(largest / amax, detail::largest_float);
  return {amax / largest, amax == 0 || factor == 0 ? 1 : factor};
}

HALFSCOPE_HD float te_quotient(float amax, const TensorFactors& tensor) {
  const float sixth = tensor.factor * (1 / detail::largest_e2m1);
  return std::min(amax * sixth, detail::largest_ue4m3);
}

/// Elements are multiplied by what takes the scale and the tensor's back.
float te_element_factor(float scale, const TensorFactors& tensor) {
  return std::min(1 / (scale * (1 / tensor.factor)), detail::largest_float);
}

/// A scale rounds down by 1/17 of itself at most.
constexpr float head_room = 17.0f / 16;

HALFSCOPE_HD float head_room_quotient(float amax, const TensorFactors& tensor) {
  return te_quotient(amax * head_room, tensor);
}

BlockScale te_block(float scale, const TensorFactors& tensor) {
  return detail::ue4m3_block(std::min(scale, detail::largest_ue4m3), tensor, te_element_factor);
}

}  // namespace

TensorFactors tensor_nvfp4_te(float tensor_amax) {
  return te_tensor(tensor_amax, detail::largest_e2m1 * detail::largest_ue4m3);
}

BlockScales scales_nvfp4_te(const BlockMaximum& block) {
  return {detail::ue4m3_block(te_quotient(block.amax, block.tensor), block.tensor, te_element_factor)};
}

detail::Ue4m3Steps detail::steps_nvfp4_te() {
  return {quotients_of<te_quotient>, te_element_factor};
}

TensorFactors tensor_te_head_room(float tensor_amax) {
  return te_tensor(tensor_amax, detail::largest_e2m1 * detail::largest_ue4m3 / head_room);
}

BlockScales scales_te_head_room(const BlockMaximum& block) {
  const float quotient = head_room_quotient(block.amax, block.tensor);
  return {detail::ue4m3_block(quotient, block.tensor, te_element_factor)};
}

detail::Ue4m3Steps detail::steps_te_head_room() {
  return {quotients_of<head_room_quotient>, te_element_factor};
}

TensorFactors tensor_four_over_six_448(float tensor_amax) {
  return te_tensor(tensor_amax, detail::largest_e2m1 * 448);
}

TensorFactors tensor_four_over_six_256(float tensor_amax) {
  return te_tensor(tensor_amax, detail::largest_e2m1 * 256);
}

BlockScales scales_four_over_six(const BlockMaximum& block) {
  const float base = block.amax / detail::largest_e2m1 * block.tensor.factor;
  return {te_block(base, block.tensor), te_block(base * 1.5f, block.tensor)};
}

}  // namespace halfscope
