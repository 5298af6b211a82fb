// The counting of blocks: the scales of a band of rows, then the rows of it.
#include <halfscope/stats/detail/block_counter.hpp>

#include <cmath>
#include <vector>

#include <halfscope/format/encoding.hpp>
#include <halfscope/kernel/block/detail/block_element.hpp>
#include <halfscope/stats/detail/row_counter.hpp>

namespace halfscope {
namespace {

/// Limits of a format; the FP32 steps of a rule may exceed the largest number a little without clipping.
ElementLimits element_limits(const FloatFormat& element, ScaleFormat scale) {
  const auto limit = static_cast<float>(overflow_limit(element));
  const float largest = from_bits(element.max_finite_bits());
  return {.normal = static_cast<float>(power_of_two(element.min_exponent())),
          .largest = scale == ScaleFormat::e8m0 ? largest : largest * (1 + 0x1p-21f),
          .overflow = limit_overflows(element) ? limit : std::nextafter(limit, from_bits(infinity_bits))};
}

/// The codes of a scale format that are counted by name.
struct ScaleLimits {
  std::uint32_t least, largest;
};
constexpr ScaleLimits scale_limits(ScaleFormat scale) {
  switch (scale) {
    case ScaleFormat::e8m0:
      return {0, e8m0::largest_code};
    case ScaleFormat::ue4m3:
      return {1, ue4m3.max_finite_code()};
    case ScaleFormat::fp32:
      break;
  }
  return {1, infinity_bits - 1};
}

/// The largest finite magnitude of a block.
float finite_maximum(std::span<const float> values, const detail::BlockRange& range) {
  float largest = 0;
  range.for_each([&](std::int64_t i) {
    const float magnitude = std::abs(values[static_cast<std::size_t>(i)]);
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  });
  return largest;
}

/// The blocks of a band: their maxima, their largest finite magnitudes, and their scales.
struct BandBlocks {
  std::vector<BlockMaxima> maxima;
  std::vector<float> amax;
  std::vector<BlockScale> scales;

  explicit BandBlocks(std::size_t count) : maxima(count), amax(count), scales(count) {}
};

void count_scales(const BandBlocks& blocks, ScaleFormat format, BlockCounts& counts) {
  const auto [least, largest] = scale_limits(format);
  std::int64_t zero = 0, nan = 0, at_least = 0, at_largest = 0;  // in registers
  for (const BlockScale& scale : blocks.scales) {
    counts.scale_codes[format == ScaleFormat::fp32 ? scale.code >> 23 & 0xFFu : scale.code] += 1;
    zero += scale.value == 0 ? 1 : 0;
    nan += std::isfinite(scale.value) ? 0 : 1;
    at_least += scale.code == least ? 1 : 0;
    at_largest += scale.code == largest ? 1 : 0;
  }
  counts.zero_scales += zero;
  counts.nan_scales += nan;
  counts.least_scales += at_least;
  counts.largest_scales += at_largest;
}

void count_band(const BandBlocks& blocks, ScaleStep step, const ElementLimits& limits, BlockCounts& counts) {
  std::int64_t zero = 0, nonfinite = 0, clipped = 0, overflow = 0, at_risk = 0;  // in registers
  for (std::size_t i = 0; i < blocks.scales.size(); ++i) {
    const float amax = blocks.amax[i], factor = blocks.scales[i].factor, scale = blocks.scales[i].value;
    const bool has_scale = scale != 0 && std::isfinite(scale);
    const float largest = step == ScaleStep::multiply ? amax * factor : amax / factor;
    const bool clips = has_scale && amax > 0 && largest > limits.largest;
    const bool overflows = clips && largest >= limits.overflow;
    const bool is_nonfinite = blocks.maxima[i].any >= infinity_bits;
    const bool loses = scale == 0 ? amax > 0 || std::isnan(largest) : !has_scale;
    zero += blocks.maxima[i].any == 0 ? 1 : 0;
    nonfinite += is_nonfinite ? 1 : 0;
    clipped += clips ? 1 : 0;
    overflow += overflows ? 1 : 0;
    at_risk += overflows || is_nonfinite || loses ? 1 : 0;
  }
  counts.blocks += std::ssize(blocks.scales);
  counts.zero_blocks += zero;
  counts.nonfinite_blocks += nonfinite;
  counts.clipped_blocks += clipped;
  counts.overflow_blocks += overflow;
  counts.blocks_at_risk += at_risk;
}

detail::RowCounter row_counter(const BlockFormat& format, const TensorFactors& tensor) {
  return {.element = format.element,
          .tensor_scale = format.tensor_scale == TensorScale::none ? 1 : tensor.scale,
          .limits = element_limits(format.element.format, format.scale())};
}

}  // namespace

BlockCounter::BlockCounter(const BlockFormat& format, float tensor_amax, ScaledExponents exponents,
                           const RandomStream& stream)
    : format_(format),
      tensor_amax_(tensor_amax),
      tensor_(detail::tensor_factors(tensor_amax, format)),
      scaler_(format_, tensor_),
      exponents_(exponents),
      stream_(stream) {}

void BlockCounter::add(const CountedPart& part, BlockCounts& counts) const {
  for (std::int64_t row = 0; row < part.shape.rows; row += format_.block.rows) {
    const std::int64_t rows = std::min<std::int64_t>(format_.block.rows, part.shape.rows - row);
    const auto begin = static_cast<std::size_t>(row * part.shape.columns);
    add_band({part.values.subspan(begin, static_cast<std::size_t>(rows * part.shape.columns)),
              {rows, part.shape.columns},
              part.first_of(row),
              part.row_stride},
             counts);
  }
}

void BlockCounter::add_band(const CountedPart& band, BlockCounts& counts) const {
  BandBlocks blocks(static_cast<std::size_t>(block_grid(band.shape, format_.block).columns));
  find_maxima(
      {band.values.data(), band.shape.rows, band.shape.columns, band.shape.columns, format_.block.columns},
      blocks.maxima);
  const bool chooses = format_.rule->choice != ScaleChoice::single;
  if (!chooses) scaler_.scale(blocks.maxima, blocks.scales);
  for (std::size_t i = 0; i < blocks.scales.size(); ++i) {
    const BlockMaxima& maxima = blocks.maxima[i];
    const auto range = [&] {  // its divisions take as long as a scale
      return detail::block_range(band.shape, format_.block, static_cast<std::int64_t>(i));
    };
    if (chooses)
      blocks.scales[i] = detail::choose_scale(band.values, range(), format_, tensor_, tensor_amax_);
    const bool has_infinity = maxima.number == infinity_bits;
    blocks.amax[i] = has_infinity ? finite_maximum(band.values, range()) : from_bits(maxima.number);
  }
  detail::RowCounter rows = row_counter(format_, tensor_);
  rows.exponents = exponents_;
  rows.stream = stream_;
  count_scales(blocks, format_.scale(), counts);
  count_band(blocks, format_.rule->step, rows.limits, counts);
  for (std::int64_t i = 0; i < band.shape.rows; ++i)
    rows.add(band.row(i), {blocks.scales, format_.block.columns, format_.rule->step}, band.first_of(i),
             counts);
}

void count_cast(const CountedPart& part, const Quantizer& quantizer, const BlockScale& scale,
                BlockCounts& counts) {
  detail::RowCounter rows{.element = quantizer,
                          .limits = element_limits(quantizer.format, ScaleFormat::e8m0)};
  rows.element.overflow = Overflow::saturate;
  for (std::int64_t i = 0; i < part.shape.rows; ++i)
    rows.add(part.row(i), {{&scale, 1}, part.shape.columns}, part.first_of(i), counts);
}

}  // namespace halfscope
