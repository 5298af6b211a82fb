// Counts of the elements of blocks, compiled once per instruction set.
#include <halfscope/kernel/block/detail/count_simd.hpp>

#include <algorithm>

#include <halfscope/format/bits.hpp>

// Nothing here may be emitted out of line under a name that other translation units share.
namespace halfscope {
namespace {

template <typename Scaled>
HALFSCOPE_HD void scale_block(const ScaledSegment& block, const BlockScale& scale, const Scaled& scaled) {
  const float value = scale.value, factor = scale.factor;
  constexpr std::size_t step = 16;
  const auto one = [&](std::size_t i) __attribute__((always_inline)) {
    block.scaled[i] = scaled(block.values[i], factor);
    block.scales[i] = value;
  };
  std::size_t at = 0;
  for (; at + step <= block.count; at += step) {
#pragma omp simd
    for (std::size_t i = at; i < at + step; ++i) one(i);
  }
  for (; at < block.count; ++at) one(at);
}

void multiply_block(const ScaledSegment& block, const BlockScale& scale) {
  scale_block(
      block, scale, [](float x, float factor) __attribute__((always_inline)) { return x * factor; });
}
void divide_block(const ScaledSegment& block, const BlockScale& scale) {
  scale_block(
      block, scale, [](float x, float factor) __attribute__((always_inline)) { return x / factor; });
}

}  // namespace

template <>
void bring_to_scale_isa<target_isa>(const RowScales& row, std::int64_t column, const ScaledSegment& out) {
  const auto columns = static_cast<std::size_t>(row.columns);
  const auto first = static_cast<std::size_t>(column);
  const auto scale_block = row.step == ScaleStep::multiply ? multiply_block : divide_block;
  for (std::size_t at = 0; at < out.count;) {
    const std::size_t block = (first + at) / columns;
    const std::size_t end = std::min(out.count, (block + 1) * columns - first);
    const ScaledSegment part{out.values + at, out.scaled + at, out.scales + at, end - at};
    scale_block(part, row.blocks[block]);
    at = end;
  }
}

template <>
ElementCounts count_isa<target_isa>(const ScaledRow& row, const ElementLimits& shared_limits,
                                    const ElementErrors& out) {
  const ElementLimits limits = shared_limits;  // copies that the results cannot alias
  const float* const values = row.values.data();
  const float* const scaled = row.scaled.data();
  const float* const elements = row.elements.data();
  const float* const scales = row.scales.data();
  const float tensor_scale = row.tensor_scale, infinity = from_bits(infinity_bits);
  float* const known = out.known;
  float* const errors = out.errors;
  std::int32_t zeros = 0, nonfinite = 0, lost = 0, flushed = 0, by_scale = 0;
  std::int32_t subnormal = 0, clipped = 0, overflow = 0;
#pragma omp simd reduction(+ : zeros, nonfinite, lost, flushed, by_scale, subnormal, clipped, overflow)
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    const float x = values[i], scale = scales[i], value = elements[i] * scale * tensor_scale;
    const float at_scale = from_bits(magnitude_bits(scaled[i])),
                element = from_bits(magnitude_bits(elements[i]));
    const bool is_finite = from_bits(magnitude_bits(x)) < infinity;
    const bool counts = is_finite & (x != 0);
    const bool has_scale = counts & (scale != 0) & (scale < infinity);
    zeros += x == 0 ? 1 : 0;
    nonfinite += is_finite ? 0 : 1;
    flushed += (counts & (value == 0)) ? 1 : 0;
    by_scale += (counts & (scale == 0)) ? 1 : 0;
    subnormal += (has_scale & (element < limits.normal) & (value != 0)) ? 1 : 0;
    clipped += (has_scale & (at_scale > limits.largest)) ? 1 : 0;
    overflow += (has_scale & (at_scale >= limits.overflow)) ? 1 : 0;
    const bool is_known = is_finite & (from_bits(magnitude_bits(value)) < infinity);
    lost += (is_finite & !is_known) ? 1 : 0;
    known[i] = is_known ? x : 0;
    errors[i] = is_known ? x - value : 0;
  }
  return {zeros, nonfinite, lost, flushed, by_scale, subnormal, clipped, overflow};
}

}  // namespace halfscope
