// Casts of operands: transform, scale of the whole, and rounding in blocks or without.
#include <halfscope/stats/operand_cast.hpp>

#include <algorithm>

#include <halfscope/core/parallel.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/block/detail/matrix_size.hpp>
#include <halfscope/kernel/block/detail/maxima.hpp>
#include <halfscope/kernel/cast/round.hpp>

namespace halfscope {
namespace {

void multiply(std::span<float> values, float factor) {
  constexpr std::int64_t elements_per_range = 1 << 14;
  parallel_for_ranges(std::ssize(values), elements_per_range, [&](std::int64_t first, std::int64_t count) {
    for (float& x : values.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)))
      x *= factor;
  });
}

std::optional<BlockCounts> round_scaled(std::span<float> values, const Quantizer& quantizer,
                                        const OperandCast& cast, OperandCounting counting) {
  std::optional<BlockCounts> counts;
  if (counting == OperandCounting::counted) counts = count_scaled(values, quantizer, cast.factor);
  if (cast.factor != 1) multiply(values, cast.factor);
  round_in_threads(values, quantizer, cast.stream);
  if (cast.factor != 1) multiply(values, 1 / cast.factor);
  return counts;
}

}  // namespace

float operand_magnitude(std::span<const float> values) {
  if (values.empty()) return 0;
  BlockMaxima all;
  find_row_maxima(values, std::ssize(values), {&all, 1});
  return from_bits(all.number);
}

void transform_operand(std::span<float> values, const MatrixShape& shape) {
  detail::check_matrix_size("transform_operand", values.size(), shape);
  const std::int64_t whole = shape.columns - shape.columns % std::ssize(hadamard_signs);
  constexpr std::int64_t rows_per_range = 16;
  parallel_for_ranges(shape.rows, rows_per_range, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t row = first; row < first + count; ++row)
      hadamard_16(
          values.subspan(static_cast<std::size_t>(row * shape.columns), static_cast<std::size_t>(whole)));
  });
  round_in_threads(values, {.format = bf16});
}

std::optional<BlockCounts> round_operand(std::span<float> values, const MatrixShape& shape,
                                         const OperandCast& cast, OperandCounting counting) {
  detail::check_matrix_size("round_operand", values.size(), shape);
  const auto* blocks = std::get_if<BlockFormat>(&cast.format);
  if (blocks == nullptr) return round_scaled(values, std::get<Quantizer>(cast.format), cast, counting);
  if (counting == OperandCounting::counted) return count_blocks(values, shape, *blocks, cast.stream, values);
  round_blocks(values, values, shape, *blocks, cast.stream);
  return std::nullopt;
}

ScaleFormat operand_scales_format(const TensorFormat& format) {
  const auto* blocks = std::get_if<BlockFormat>(&format);
  return blocks == nullptr ? ScaleFormat::fp32 : blocks->scale();
}

}  // namespace halfscope
