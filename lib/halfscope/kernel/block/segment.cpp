// Segments of rows in blocks with the instruction set in use.
#include <halfscope/kernel/block/detail/segment_simd.hpp>

#include <cmath>

namespace halfscope {
namespace {

Segment segment_of(std::span<const float> values, const SegmentScales& scales) {
  return {values.data(), scales.factors.data(), scales.values.data(), values.size(), scales.are_ordinary};
}

bool takes_ordinary_numbers(const RoundingGrid& grid, float tensor_scale) {
  const bool rounds_by_adding = grid.dropped_bits > 0 && grid.min_normal_field > 1;
  const bool has_both_zeros = grid.unsigned_zero == 0 && grid.flush_below == 0;
  return rounds_by_adding && has_both_zeros && grid.beyond == grid.max_finite && std::isfinite(tensor_scale);
}

}  // namespace

SegmentRounding::SegmentRounding(const BlockFormat& format, const TensorFactors& tensor)
    : element(format.element.format),
      grid(rounding_grid(format.element)),
      step(format.rule->step),
      zero(format.rule->zero),
      nan(from_bits(element.has_nan() ? quiet_nan_bits : element.max_finite_bits())),
      tensor_scale(format.tensor_scale == TensorScale::none ? 1.0f : tensor.scale),
      takes_ordinary(takes_ordinary_numbers(grid, tensor_scale)) {}

void write_ordinary_values(const OrdinaryRow& row, const SegmentRounding& rounding, float* out) {
  dispatch_isa([&]<Isa isa>() { ordinary_values_isa<isa>(row, rounding, out); });
}

void write_ordinary_codes(const OrdinaryRow& row, const SegmentRounding& rounding, std::uint8_t* codes) {
  dispatch_isa([&]<Isa isa>() { ordinary_codes_isa<isa>(row, rounding, codes); });
}

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

void nearest_ue4m3(std::span<const float> numbers, std::span<std::uint32_t> codes) {
  dispatch_isa([&]<Isa isa>() { nearest_ue4m3_isa<isa>(numbers.data(), numbers.size(), codes.data()); });
}

}  // namespace halfscope
