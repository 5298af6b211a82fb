// Counts the elements of a row whose scales are known, a segment at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <halfscope/kernel/block/detail/count.hpp>
#include <halfscope/kernel/block/detail/ordinary.hpp>
#include <halfscope/stats/detail/block_counter.hpp>

namespace halfscope::detail {

/// Scales and exponents of a part in tables, beside its counts.
struct CodeTables {
  FieldTables scales;  ///< by code; FP32 scales by their exponent field
  FieldTables fields;  ///< numbers at their block's scale; exponents of subnormal ones are added at once

  /// Adds the tables to the counts of blocks with that scale format.
  void finish(ScaleFormat format, BlockCounts& counts) const;
};

/// Blocks of a row or of a band of rows.
struct ScaledBlocks {
  RowScales scales;
  std::span<const std::uint8_t> marks;  ///< mark of each block
};

/// How the elements of a row are rounded and counted.
struct RowCounter {
  Quantizer element;
  float tensor_scale = 1;
  ElementLimits limits{};
  ScaledExponents exponents = ScaledExponents::left_out;
  RandomStream stream{};
  /// The rounding of segments without NaNs and infinities, which are counted in one pass; nothing where
  /// elements are not rounded to the nearest.
  std::optional<SegmentRounding> at_once{};

  /// Adds elements, signal and error of a row whose first element has the index `first` in its tensor.
  void add(std::span<const float> row, const ScaledBlocks& blocks, std::int64_t first, CodeTables& tables,
           BlockCounts& counts) const;

 private:
  /// Columns of a row: the first one's number, and its element's index in the tensor.
  struct Segment {
    std::span<const float> values;
    std::int64_t column, first;
  };
  /// The segment's blocks, where they are whole ones, or one of which it is a part.
  [[nodiscard]] std::optional<ScaledBlocks> whole_blocks(const Segment& segment,
                                                         const ScaledBlocks& blocks) const;
  void add_at_once(const OrdinaryRow& row, CodeTables& tables, BlockCounts& counts) const;
  void add_beyond(const OrdinaryRow& row, ScaleStep step, BlockCounts& counts) const;
  void add_segment(const Segment& segment, const RowScales& row, BlockCounts& counts) const;
  void round_elements(std::span<const float> scaled, std::span<float> elements, std::int64_t first) const;
};

}  // namespace halfscope::detail
