// Counts what block formats do to a tensor that comes in parts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <halfscope/kernel/block/detail/block_scaler.hpp>
#include <halfscope/kernel/block/detail/ordinary.hpp>
#include <halfscope/stats/block_counts.hpp>

namespace halfscope {

namespace detail {
struct BandBlocks;
struct PartTables;
struct RowCounter;
}  // namespace detail

/// Elements of a row whose squares are added up in double precision before they enter SquareSums, from
/// column 0 on.
inline constexpr std::int64_t counted_segment = 1024;

/// A part of a tensor, as rows of whole blocks of it: it begins at a multiple of a block's rows and columns
/// and of counted_segment columns, and ends there or where the tensor does.
struct CountedPart {
  std::span<const float> values;
  MatrixShape shape;            ///< shape of the part
  std::int64_t first = 0;       ///< index of its first element in the tensor, for stochastic rounding
  std::int64_t row_stride = 0;  ///< from one of its rows to the next in the tensor; 0: the part's columns

  std::span<float> rounded{};  ///< gets what round_blocks gives, unless it is empty; may be `values`
  /// Counts of every segment, row by row; or empty.
  std::span<const NumberCounts> numbers{};
  std::span<RowSums> sums{};     ///< gets those of each row added; or empty
  std::span<RowSums> columns{};  ///< gets those of each column added; or empty

  /// Segments of a row.
  [[nodiscard]] std::size_t segments() const {
    return static_cast<std::size_t>((shape.columns + counted_segment - 1) / counted_segment);
  }
  [[nodiscard]] std::span<const float> row(std::int64_t i) const {
    const auto width = static_cast<std::size_t>(shape.columns);
    return values.subspan(static_cast<std::size_t>(i) * width, width);
  }
  [[nodiscard]] std::span<float> rounded_row(std::int64_t i) const {
    const auto width = static_cast<std::size_t>(shape.columns);
    return rounded.empty() ? rounded : rounded.subspan(static_cast<std::size_t>(i) * width, width);
  }
  [[nodiscard]] CountedPart rows(std::int64_t from, std::int64_t count) const {
    const auto begin = static_cast<std::size_t>(from * shape.columns);
    const auto size = static_cast<std::size_t>(count * shape.columns);
    return {
        values.subspan(begin, size),
        {count, shape.columns},
        first_of(from),
        row_stride,
        rounded.empty() ? rounded : rounded.subspan(begin, size),
        numbers_of(from, count),
        sums.empty() ? sums : sums.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(count)),
        columns};
  }
  /// `numbers` of some rows.
  [[nodiscard]] std::span<const NumberCounts> numbers_of(std::int64_t from, std::int64_t count) const {
    return numbers.empty() ? numbers
                           : numbers.subspan(static_cast<std::size_t>(from) * segments(),
                                             static_cast<std::size_t>(count) * segments());
  }
  /// Place of the sums of row i; null where there are none.
  [[nodiscard]] RowSums* sums_of(std::int64_t i) const {
    return sums.empty() ? nullptr : &sums[static_cast<std::size_t>(i)];
  }
  /// Index in the tensor of the first element of row i.
  [[nodiscard]] std::int64_t first_of(std::int64_t i) const {
    return first + i * (row_stride == 0 ? shape.columns : row_stride);
  }
};

/// Counts of the part's segments, row by row.
[[nodiscard]] std::vector<NumberCounts> numbers_of_segments(const CountedPart& part);

/// Adds what round_blocks does to parts of one tensor to counts, on one thread. Counts of all parts, merged
/// in any order, are those of the tensor.
class BlockCounter {
 public:
  /// `tensor_amax` is the tensor's largest magnitude, infinity included and NaNs left out.
  BlockCounter(const BlockFormat& format, float tensor_amax, ScaledExponents exponents,
               const RandomStream& stream = {});

  void add(const CountedPart& part, BlockCounts& counts) const;
  /// Whether parts are rounded in the same pass; other formats' parts have no place for results.
  [[nodiscard]] bool rounds() const;

 private:
  void scale_band(const CountedPart& band, detail::BandBlocks& blocks) const;
  void count_band(const CountedPart& band, const detail::RowCounter& rows, detail::BandBlocks& blocks,
                  detail::PartTables& tables, BlockCounts& counts) const;

  BlockFormat format_;
  float tensor_amax_;
  TensorFactors tensor_;
  detail::BlockScaler scaler_;
  ScaledExponents exponents_;
  RandomStream stream_;
};

/// Adds what a cast to a format without blocks does, with one scale for the tensor and elements that
/// saturate. Counts elements, their exponents at the scale where asked for, signal and error.
void count_cast(const CountedPart& part, const Quantizer& quantizer, const BlockScale& scale,
                ScaledExponents exponents, BlockCounts& counts);

}  // namespace halfscope
