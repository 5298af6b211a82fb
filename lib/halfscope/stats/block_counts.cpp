// Counts of blocks as values, and those of a whole matrix, whose parts have counts of their own.
#include <halfscope/stats/block_counts.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <halfscope/core/parallel.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/block/detail/block_element.hpp>
#include <halfscope/kernel/block/detail/matrix_size.hpp>
#include <halfscope/stats/detail/block_counter.hpp>

namespace halfscope {

void SquareSums::add(double squares) {
  if (squares == 0) return;
  // Rounded to the nearest significand of 31 bits, ties to even.
  constexpr int dropped = 22;
  const auto bits = std::bit_cast<std::uint64_t>(squares);
  const auto field = static_cast<int>(bits >> 52);
  const std::uint64_t significand = (bits & ((std::uint64_t{1} << 52) - 1)) | std::uint64_t{1} << 52;
  const std::uint64_t half = (std::uint64_t{1} << (dropped - 1)) - 1 + (significand >> dropped & 1);
  binades_[static_cast<std::size_t>(field - 1023 - lowest)] +=
      static_cast<std::int64_t>((significand + half) >> dropped);
}

void SquareSums::merge(const SquareSums& part) {
  for (std::size_t i = 0; i < binades_.size(); ++i) binades_[i] += part.binades_[i];
}

double SquareSums::sum() const {
  constexpr int bits = 31;
  double sum = 0;
  for (std::size_t i = 0; i < binades_.size(); ++i) {
    const int exponent = lowest + static_cast<int>(i) - (bits - 1);
    sum += std::ldexp(static_cast<double>(binades_[i]), exponent);
  }
  return sum;
}

void BlockCounts::merge(const BlockCounts& part) {
  constexpr std::array counters{
      &BlockCounts::elements,       &BlockCounts::zeros,           &BlockCounts::nonfinite,
      &BlockCounts::lost,           &BlockCounts::flushed,         &BlockCounts::flushed_by_scale,
      &BlockCounts::subnormal,      &BlockCounts::clipped,         &BlockCounts::overflow,
      &BlockCounts::blocks,         &BlockCounts::zero_blocks,     &BlockCounts::nonfinite_blocks,
      &BlockCounts::clipped_blocks, &BlockCounts::overflow_blocks, &BlockCounts::blocks_at_risk,
      &BlockCounts::zero_scales,    &BlockCounts::least_scales,    &BlockCounts::largest_scales,
      &BlockCounts::nan_scales};
  for (const auto counter : counters) this->*counter += part.*counter;
  for (std::size_t i = 0; i < scale_codes.size(); ++i) scale_codes[i] += part.scale_codes[i];
  for (std::size_t i = 0; i < exponents.size(); ++i) exponents[i] += part.exponents[i];
  signal.merge(part.signal);
  error.merge(part.error);
}

double BlockCounts::signal_to_noise_db() const {
  return 10 * std::log10(signal.sum() / error.sum());
}

double BlockCounts::relative_squared_error() const {
  const double difference = error.sum();
  return difference == 0 ? 0 : difference / signal.sum();
}

std::optional<BlockCounts::ScaleRange> BlockCounts::scale_range(ScaleFormat format) const {
  std::optional<ScaleRange> range;
  for (std::size_t code = 0; code < scale_codes.size(); ++code) {
    const bool of_zeros = format == ScaleFormat::e8m0 && code == 0 && scale_codes[code] <= zero_blocks;
    if (scale_codes[code] == 0 || of_zeros) continue;
    const auto bits = static_cast<std::uint32_t>(code);
    const float scale = decode_scale(format == ScaleFormat::fp32 ? bits << 23 : bits, format);
    if (!(scale > 0) || !std::isfinite(scale)) continue;
    const int exponent = std::ilogb(scale);
    range = {std::min(exponent, range.value_or(ScaleRange{exponent}).low),
             std::max(exponent, range.value_or(ScaleRange{0, exponent}).high)};
  }
  return range;
}

double relative_error(const BlockCounts& counts) {
  // Blocks that hold a NaN or an infinity themselves may take their other elements with them.
  if (counts.lost > 0 && counts.nonfinite == 0) return std::numeric_limits<double>::infinity();
  return std::sqrt(counts.relative_squared_error());
}

double flushed_share(const BlockCounts& counts) {
  const std::int64_t nonzero = counts.elements - counts.zeros - counts.nonfinite;
  return nonzero == 0 ? 0 : static_cast<double>(counts.flushed) / static_cast<double>(nonzero);
}

double decibels(double relative_error) {
  return -20 * std::log10(relative_error);
}

BlockCounts count_blocks(std::span<const float> values, const MatrixShape& shape, const BlockFormat& format,
                         const RandomStream& stream, std::span<float> rounded) {
  detail::check_matrix_size("count_blocks", values.size(), shape);
  if (!rounded.empty()) detail::check_matrix_size("count_blocks: results", rounded.size(), shape);
  const BlockCounter counter(format, detail::tensor_maximum(values, format), ScaledExponents::counted,
                             stream);
  constexpr std::int64_t most_parts = 64, least_elements = std::int64_t{1} << 17;
  const std::int64_t bands = block_grid(shape, format.block).rows;
  const std::int64_t parts = std::clamp<std::int64_t>(std::ssize(values) / least_elements, 1, most_parts);
  const std::int64_t grain = bands / parts + 1;
  const std::span<float> at_once = counter.rounds() ? rounded : std::span<float>{};
  std::vector<BlockCounts> found(static_cast<std::size_t>((bands + grain - 1) / grain));
  parallel_for_ranges(bands, grain, [&](std::int64_t first, std::int64_t count) {
    const std::int64_t row = first * format.block.rows;
    const MatrixShape part{std::min(count * format.block.rows, shape.rows - row), shape.columns};
    const auto begin = static_cast<std::size_t>(row * shape.columns);
    const auto elements = static_cast<std::size_t>(part.rows * part.columns);
    counter.add({.values = values.subspan(begin, elements),
                 .shape = part,
                 .first = row * shape.columns,
                 .rounded = at_once.empty() ? at_once : at_once.subspan(begin, elements)},
                found[static_cast<std::size_t>(first / grain)]);
  });
  BlockCounts all;
  for (const BlockCounts& part : found) all.merge(part);
  if (!rounded.empty() && at_once.empty()) round_blocks(values, rounded, shape, format, stream);
  return all;
}

BlockCounts count_scaled(std::span<const float> values, const Quantizer& quantizer, float factor) {
  BlockCounts counts;
  const float value = 1 / factor;
  count_cast({values, {1, std::ssize(values)}}, quantizer,
             {.code = to_bits(value), .value = value, .factor = factor}, ScaledExponents::left_out, counts);
  counts.blocks = 1;
  counts.clipped_blocks = counts.clipped > 0 ? 1 : 0;
  counts.overflow_blocks = counts.overflow > 0 ? 1 : 0;
  counts.zero_blocks = counts.zeros == counts.elements ? 1 : 0;
  counts.nonfinite_blocks = counts.nonfinite > 0 ? 1 : 0;
  counts.scale_codes[to_bits(value) >> 23 & 0xFFu] = 1;
  return counts;
}

}  // namespace halfscope
