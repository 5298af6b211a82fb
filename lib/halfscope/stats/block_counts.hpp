// Counts what a block format does to a matrix: per element, per block and per scale, as integers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <halfscope/core/random.hpp>
#include <halfscope/format/block_format.hpp>
#include <halfscope/kernel/block/quantise.hpp>

namespace halfscope {

/// Sums of squares of floats as integers: significands of 31 bits, per binade of the sum. Their order does
/// not matter; a binade holds 2^32 sums.
class SquareSums {
 public:
  /// Adds a sum of squares of at most 2^20 floats.
  void add(double squares);
  void merge(const SquareSums& part);
  /// The sum, each part with an error of at most 2^-31 of itself.
  [[nodiscard]] double sum() const;

  friend bool operator==(const SquareSums&, const SquareSums&) = default;

 private:
  static constexpr int lowest = -298, highest = 276;
  std::array<std::int64_t, highest - lowest + 1> binades_{};  ///< [e - lowest]
};

/// A matrix's elements and blocks by what its format made of them. Elements at a block's scale are x / scale,
/// as the rule rounds it.
struct BlockCounts {
  static constexpr int first_exponent = -149, last_exponent = 127;

  // Elements: the sum of zeros, nonfinite, flushed, subnormal and elements that stay normal.
  std::int64_t elements = 0;
  std::int64_t zeros = 0;             ///< are zero
  std::int64_t nonfinite = 0;         ///< are infinite or NaN
  std::int64_t lost = 0;              ///< are finite and get an infinity or a NaN
  std::int64_t flushed = 0;           ///< are not zero and get the value zero
  std::int64_t flushed_by_scale = 0;  ///< flushed by their block's scale of zero
  std::int64_t subnormal = 0;         ///< become subnormal numbers of the element format
  std::int64_t clipped = 0;   ///< scaled, exceed the largest number, by 2^-21 of it or more but for E8M0
  std::int64_t overflow = 0;  ///< clipped beyond the numbers that round to the largest one

  // Blocks.
  std::int64_t blocks = 0;
  std::int64_t zero_blocks = 0;       ///< have zeros alone
  std::int64_t nonfinite_blocks = 0;  ///< have an infinity or a NaN
  std::int64_t clipped_blocks = 0;    ///< have a clipped element
  std::int64_t overflow_blocks = 0;   ///< have an element that overflows
  std::int64_t blocks_at_risk = 0;    ///< overflow, are not finite, or lose numbers to a scale of 0 or NaN

  // Scales.
  std::int64_t zero_scales = 0;
  std::int64_t least_scales = 0;                ///< have the code of the smallest number that is not zero
  std::int64_t largest_scales = 0;              ///< have the code of the largest number
  std::int64_t nan_scales = 0;                  ///< NaN, or an infinite FP32 scale
  std::array<std::int64_t, 256> scale_codes{};  ///< by code; FP32 scales by their exponent field

  /// Finite elements that are not zero by floor(log2 |x / scale|), [e - first_exponent]; without blocks whose
  /// scale is zero or NaN.
  std::array<std::int64_t, last_exponent - first_exponent + 1> exponents{};

  SquareSums signal{};  ///< squares of finite elements with finite values
  SquareSums error{};   ///< squares of the differences between their values and them

  void merge(const BlockCounts& part);
  /// 10 log10 of signal over error; infinity without error, NaN without signal.
  [[nodiscard]] double signal_to_noise_db() const;
  /// Error over signal, the relative mean squared error; 0 without error.
  [[nodiscard]] double relative_squared_error() const;

  /// Smallest and largest floor(log2) of the scales that are neither zero nor NaN, of scales of that format,
  /// without the least E8M0 scale, 2^-127, of blocks of zeros; empty where there are none.
  struct ScaleRange {
    int low = 0, high = 0;
  };
  [[nodiscard]] std::optional<ScaleRange> scale_range(ScaleFormat format) const;

  friend bool operator==(const BlockCounts&, const BlockCounts&) = default;
};

/// Whether the exponents at a block's scale are counted, which takes half of the time.
enum class ScaledExponents : std::uint8_t { counted, left_out };

/// Norm of the error over that of the tensor: 0 of a tensor of zeros; infinite where finite elements become
/// NaN or infinite and the tensor has neither.
[[nodiscard]] double relative_error(const BlockCounts& counts);
/// Signal over noise in dB of a relative error: infinite without error.
[[nodiscard]] double decibels(double relative_error);

/// Squares of a row and of its errors, both of finite elements with finite values.
struct RowSums {
  double signal = 0, error = 0;
};

/// Errors of the rows of a tensor, each relative to the norm of its row; rows of zeros have none.
struct RowErrors {
  std::int64_t rows = 0;
  double median = 0, worst = 0;
  std::int64_t worst_row = 0;
};

/// Cost of one scale for a whole tensor, where it flushes many values.
struct SharedScale {
  std::int64_t row = 0, column = 0;  ///< place of the finite element that sets the scale
  float largest = 0;                 ///< its magnitude
  float flushed_up_to = 0;           ///< magnitudes up to here become zero
  std::int64_t flushed_by_rows = 0;  ///< values that would, with an FP32 scale for each row
};

/// Errors of the columns of a tensor whose norm lies in few of them, over a sample of its rows; each is
/// relative to the norm of its column.
struct ColumnErrors {
  double median = 0, worst_tenth = 0;  ///< a tenth of the columns errs by the latter or more
  std::int64_t largest = 0;            ///< column of the largest norm
  double norm_ratio = 1;               ///< its norm over that of the median column
};

/// Counts of one format over a tensor, which is one block of a format without blocks.
struct FormatCounts {
  BlockCounts counts;
  /// The elements were divided by its power of two; nothing of formats in blocks, and of those without blocks
  /// that have more than 8 bits, which are cast as they are.
  std::optional<int> scale_log2{};
  RowErrors rows{};
  std::optional<SharedScale> shared{};    ///< where there is a scale_log2
  std::optional<ColumnErrors> columns{};  ///< where a few columns have most of the norm
};

/// Values flushed of those that are finite and not zero.
[[nodiscard]] double flushed_share(const BlockCounts& counts);

/// Counts what round_blocks does to `values`, split over the threads; the counts do not depend on them. Where
/// `rounded` is not empty, it gets what round_blocks gives, and may be `values` itself. Throws
/// InvalidArgument where a size is not that of `shape`.
[[nodiscard]] BlockCounts count_blocks(std::span<const float> values, const MatrixShape& shape,
                                       const BlockFormat& format, const RandomStream& stream = {},
                                       std::span<float> rounded = {});

/// Counts what a cast to a format without blocks does, whose elements saturate: x becomes the number that
/// `factor` x is rounded to, times 1 / factor. The whole is one block.
[[nodiscard]] BlockCounts count_scaled(std::span<const float> values, const Quantizer& quantizer,
                                       float factor);

}  // namespace halfscope
