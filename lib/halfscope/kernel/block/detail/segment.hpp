// Segments of rows in blocks: values and codes of elements that are rounded to the nearest at their block's
// scale.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <halfscope/format/block_format.hpp>
#include <halfscope/format/round.hpp>

namespace halfscope {

/// The most columns of a segment.
inline constexpr std::size_t segment_columns = 1024;

/// How elements are brought to their scale, rounded, and taken back; worked out once per array.
struct SegmentRounding {
  SegmentRounding(const BlockFormat& format, const TensorFactors& tensor);

  FloatFormat element;
  RoundingGrid grid;
  ScaleStep step;
  ZeroSign zero;
  float nan;           ///< a NaN's number: NaN, or the largest number of elements that have none
  float tensor_scale;  ///< the factor of all values
  /// Whether finite numbers at finite scales take the shorter way: the format has both zeros and subnormal
  /// numbers, and its elements saturate.
  bool takes_ordinary;
};

/// A scale and its factor for each column of a segment, and ones beyond them up to a whole step of vectors.
struct SegmentScales {
  alignas(64) std::array<float, segment_columns> factors;
  alignas(64) std::array<float, segment_columns> values;
  bool are_ordinary = false;  ///< with the numbers that they are for: as an OrdinaryRow
};
/// The scales of `count` columns from `column` on; blocks[i] is that of columns i * columns to (i + 1) *
/// columns.
void spread_scales(std::span<const BlockScale> blocks, std::size_t columns, std::size_t column,
                   std::size_t count, SegmentScales& to);

/// out[i] is element * scale * tensor_scale, each product rounded to FP32; every NaN is the quiet one. `out`
/// may be `values`.
void write_values(std::span<const float> values, const SegmentScales& scales, const SegmentRounding& rounding,
                  float* out);
/// The codes of the elements.
void write_codes(std::span<const float> values, const SegmentScales& scales, const SegmentRounding& rounding,
                 std::uint8_t* codes);

/// Blocks of ordinary rows are a multiple of so many columns.
inline constexpr std::int64_t ordinary_step = 16;
/// A row of blocks, the last one maybe shorter: all numbers, scales and factors are finite, and no factor
/// that divides is 0.
struct OrdinaryRow {
  std::span<const float> values;
  std::span<const BlockScale> scales;
  std::size_t columns;  ///< columns of a block
};
/// As write_values and write_codes, with a rounding that takes ordinary numbers.
void write_ordinary_values(const OrdinaryRow& row, const SegmentRounding& rounding, float* out);
void write_ordinary_codes(const OrdinaryRow& row, const SegmentRounding& rounding, std::uint8_t* codes);

/// The UE4M3 codes nearest to numbers from 0 to 448, or that of NaN.
void nearest_ue4m3(std::span<const float> numbers, std::span<std::uint32_t> codes);

}  // namespace halfscope
