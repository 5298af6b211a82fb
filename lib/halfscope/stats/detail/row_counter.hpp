// Counts the elements of a row whose scales are known, a segment at a time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <halfscope/kernel/block/detail/count.hpp>
#include <halfscope/kernel/block/detail/marks.hpp>
#include <halfscope/kernel/block/detail/ordinary.hpp>
#include <halfscope/stats/detail/block_counter.hpp>

namespace halfscope::detail {

/// Scales and exponents of a part, beside its counts.
struct PartTables {
  explicit PartTables(const FloatFormat& element) : binades(element) {}

  CodeTables scales;  ///< by code; FP32 scales by their exponent field
  /// By code of the scale: `first_marked`, once there was such a scale.
  std::array<std::uint32_t, CodeTables::codes> first_marked{};
  BinadePlanes binades;  ///< most elements at their block's scale; the others' exponents are added at once

  void settle_binades(BlockCounts& counts);
  /// Adds the tables to the counts of blocks with that scale format.
  void finish(ScaleFormat format, BlockCounts& counts);
};

/// Blocks of a row or of a band of rows.
struct ScaledBlocks {
  RowScales scales;
  std::span<const std::uint32_t> marks;  ///< mark of each block
  bool are_marked = true;                ///< false: all marks are 0, whatever `marks` holds
};

/// Elements of a row, the index in the tensor of the first one, and the place of what they are rounded to.
struct CountedRow {
  std::span<const float> values;
  std::int64_t first = 0;
  std::span<float> rounded{};               ///< may be empty, or the values themselves
  std::span<const NumberCounts> numbers{};  ///< counts of each segment; may be empty
  RowSums* sums = nullptr;                  ///< gets the row's added
  std::span<RowSums> columns{};             ///< gets each element's added; may be empty
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

  /// Adds elements, signal and error of a row, and writes it rounded, which takes `at_once`.
  void add(const CountedRow& row, const ScaledBlocks& blocks, PartTables& tables, BlockCounts& counts) const;

 private:
  /// Columns of a row from `column` on.
  struct Segment {
    CountedRow row;
    std::int64_t column;
  };
  /// The segment's blocks, where they are whole ones, or one of which it is a part.
  [[nodiscard]] std::optional<ScaledBlocks> whole_blocks(const Segment& segment,
                                                         const ScaledBlocks& blocks) const;
  void add_at_once(const OrdinaryRow& row, OrdinaryOutput out, PartTables& tables, BlockCounts& counts,
                   RowSums* sums) const;
  void add_segment(const Segment& segment, const RowScales& row, BlockCounts& counts) const;
  void round_elements(std::span<const float> scaled, std::span<float> elements, std::int64_t first) const;
  void write_segment(const Segment& segment, const RowScales& row) const;
};

}  // namespace halfscope::detail
