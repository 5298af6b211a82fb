// The lists that a block is in.
#include <halfscope/io/layouts/detail/quantized_tensor.hpp>

#include <cmath>

#include <halfscope/io/layouts/detail/code_source.hpp>

namespace halfscope {

QuantizedTensor::QuantizedTensor(std::string name, std::vector<std::int64_t> shape,
                                 std::vector<std::size_t> axes)
    : stored_{std::move(name), DType::f32, std::move(shape), 0, Access::random, std::move(axes)} {
  stored_.elements = elements_of_shape(stored_.shape);
}

void judge_block(const BlockState& state, const LargestNumbers& largest, BlockFindings& found) {
  const auto& [block, code, scale] = state;
  if (code == 0) found.zero_blocks.add(block);
  if (!std::isfinite(code)) found.nan_codes.add(block);
  if (!std::isfinite(scale)) found.nan_scales.add(block);
  if (scale == 0 && code != 0) found.zero_scales.add(block);
  if (scale < 0) found.negative_scales.add(block);
  if (scale == largest.scale) found.saturated_scales.add(block);
  if (code == largest.code) found.at_largest.add(block);
  if (code > 0 && code < largest.code / 2) found.low.add(block);
}

}  // namespace halfscope
