// Segments of rows in blocks with the instruction set in use.
#include <halfscope/kernel/block/detail/segment_simd.hpp>

namespace halfscope {
namespace {

Segment segment_of(std::span<const float> values, const SegmentScales& scales) {
  return {values.data(), scales.factors.data(), scales.values.data(), values.size()};
}

}  // namespace

SegmentRounding::SegmentRounding(const BlockFormat& format, const TensorFactors& tensor)
    : element(format.element.format),
      grid(rounding_grid(format.element)),
      step(format.rule->step),
      zero(format.rule->zero),
      nan(from_bits(element.has_nan() ? quiet_nan_bits : element.max_finite_bits())),
      tensor_scale(format.tensor_scale == TensorScale::none ? 1.0f : tensor.scale) {}

void spread_scales(std::span<const BlockScale> blocks, std::size_t columns, std::size_t column,
                   std::size_t count, SegmentScales& to) {
  dispatch_isa([&]<Isa isa>() { spread_isa<isa>(blocks.data(), {columns, column, count}, to); });
}

void write_values(std::span<const float> values, const SegmentScales& scales, const SegmentRounding& rounding,
                  float* out) {
  dispatch_isa([&]<Isa isa>() { write_values_isa<isa>(segment_of(values, scales), rounding, out); });
}

void write_codes(std::span<const float> values, const SegmentScales& scales, const SegmentRounding& rounding,
                 std::uint8_t* codes) {
  dispatch_isa([&]<Isa isa>() { write_codes_isa<isa>(segment_of(values, scales), rounding, codes); });
}

}  // namespace halfscope
