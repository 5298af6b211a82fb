// NVFP4 of TransformerEngine: the block's scale in units of the tensor's, to the nearest E4M3, zero included.
#include <halfscope/format/detail/scale_arithmetic.hpp>

namespace halfscope {
namespace {

/// 6 times the largest scale over amax; 1 where that is no positive number.
TensorFactors te_tensor(float amax, float largest) {
  const float factor = std::min(largest / amax, detail::largest_float);
  return {amax / largest, amax == 0 || factor == 0 ? 1 : factor};
}

/// Elements are multiplied by what takes the scale and the tensor's back.
BlockScale te_block(float scale, float tensor_factor) {
  BlockScale block = detail::ue4m3_scale(std::min(scale, detail::largest_ue4m3));
  block.factor = std::min(1 / (block.value * (1 / tensor_factor)), detail::largest_float);
  return block;
}

}  // namespace

TensorFactors tensor_nvfp4_te(float tensor_amax) {
  return te_tensor(tensor_amax, detail::largest_e2m1 * detail::largest_ue4m3);
}

BlockScales scales_nvfp4_te(const BlockMaximum& block) {
  const float sixth = block.tensor.factor * (1 / detail::largest_e2m1);
  return {te_block(block.amax * sixth, block.tensor.factor)};
}

TensorFactors tensor_four_over_six_448(float tensor_amax) {
  return te_tensor(tensor_amax, detail::largest_e2m1 * 448);
}

TensorFactors tensor_four_over_six_256(float tensor_amax) {
  return te_tensor(tensor_amax, detail::largest_e2m1 * 256);
}

BlockScales scales_four_over_six(const BlockMaximum& block) {
  const float base = block.amax / detail::largest_e2m1 * block.tensor.factor;
  return {te_block(base, block.tensor.factor), te_block(base * 1.5f, block.tensor.factor)};
}

}  // namespace halfscope
