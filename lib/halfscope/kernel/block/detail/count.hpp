// Loops over a row of elements that share scales by blocks: elements at their scale, and counts.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/format/block_format.hpp>

namespace halfscope {

/// The scales of a row, each for `columns` elements.
struct RowScales {
  std::span<const BlockScale> blocks;
  std::int64_t columns = 1;
  ScaleStep step = ScaleStep::multiply;
};

/// Elements at their scale: scaled[i] is values[i] times the factor of its block, or over it, rounded to
/// FP32, and scales[i] the scale. values[0] is in column `column` of the row.
void bring_to_scale(std::span<const float> values, const RowScales& row, std::int64_t column,
                    std::span<float> scaled, std::span<float> scales);

/// The magnitudes at a block's scale at which counters begin.
struct ElementLimits {
  float normal = 0;    ///< below it elements are subnormal
  float largest = 0;   ///< above it elements are clipped
  float overflow = 0;  ///< from it on nearest_even takes them beyond the largest number
};

/// A row of elements, of the same length each.
struct ScaledRow {
  std::span<const float> values, scaled;    ///< before and after the factor
  std::span<const float> elements, scales;  ///< `scaled` after rounding, and the scale of each
  float tensor_scale = 1;
};

struct ElementCounts {
  std::int64_t zeros = 0, nonfinite = 0, lost = 0, flushed = 0, flushed_by_scale = 0;
  std::int64_t subnormal = 0, clipped = 0, overflow = 0;
};

/// Counts the elements of a row, and writes the finite ones whose value is finite to `known` and what the
/// value differs from them by to `errors`; 0 for all others. The value is element * scale * tensor_scale,
/// each product rounded.
[[nodiscard]] ElementCounts count_elements(const ScaledRow& row, const ElementLimits& limits,
                                           std::span<float> known, std::span<float> errors);

}  // namespace halfscope
