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

/// Maxima and scale of a block, which is counted by them beside its elements.
struct BlockSeen {
  BlockMaxima maxima;
  float finite_amax;
  BlockScale scale;
  ScaleStep step;
};

void count_scale(const BlockScale& scale, ScaleFormat format, BlockCounts& counts) {
  const auto [least, largest] = scale_limits(format);
  counts.scale_codes[format == ScaleFormat::fp32 ? scale.code >> 23 & 0xFFu : scale.code] += 1;
  counts.zero_scales += scale.value == 0 ? 1 : 0;
  counts.nan_scales += std::isfinite(scale.value) ? 0 : 1;
  counts.least_scales += scale.code == least ? 1 : 0;
  counts.largest_scales += scale.code == largest ? 1 : 0;
}

void count_block(const BlockSeen& block, const ElementLimits& limits, BlockCounts& counts) {
  const bool has_scale = block.scale.value != 0 && std::isfinite(block.scale.value);
  const float largest = block.step == ScaleStep::multiply ? block.finite_amax * block.scale.factor
                                                          : block.finite_amax / block.scale.factor;
  const bool clips = has_scale && block.finite_amax > 0 && largest > limits.largest;
  const bool is_nonfinite = block.maxima.any >= infinity_bits;
  const bool loses = block.scale.value == 0 ? block.finite_amax > 0 : !has_scale;
  ++counts.blocks;
  counts.zero_blocks += block.maxima.any == 0 ? 1 : 0;
  counts.nonfinite_blocks += is_nonfinite ? 1 : 0;
  counts.clipped_blocks += clips ? 1 : 0;
  counts.overflow_blocks += clips && largest >= limits.overflow ? 1 : 0;
  counts.blocks_at_risk += clips || is_nonfinite || loses ? 1 : 0;
}

BlockScale scale_of(const BlockMaxima& maxima, const BlockFormat& format, const TensorFactors& tensor) {
  return format.rule
      ->scales({.amax = from_bits(maxima.number),
                .has_nan = maxima.any > infinity_bits,
                .element = format.element.format,
                .tensor = tensor})
      .first;
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
      exponents_(exponents),
      stream_(stream) {}

void BlockCounter::add(const CountedPart& part, BlockCounts& counts) const {
  const std::int64_t stride = part.row_stride == 0 ? part.shape.columns : part.row_stride;
  for (std::int64_t row = 0; row < part.shape.rows; row += format_.block.rows) {
    const std::int64_t rows = std::min<std::int64_t>(format_.block.rows, part.shape.rows - row);
    const auto begin = static_cast<std::size_t>(row * part.shape.columns);
    add_band({part.values.subspan(begin, static_cast<std::size_t>(rows * part.shape.columns)),
              {rows, part.shape.columns},
              part.first + row * stride,
              stride},
             counts);
  }
}

void BlockCounter::add_band(const CountedPart& band, BlockCounts& counts) const {
  const auto columns = static_cast<std::size_t>(band.shape.columns);
  const auto row = [&](std::int64_t i) {
    return band.values.subspan(static_cast<std::size_t>(i) * columns, columns);
  };
  std::vector<BlockMaxima> maxima(static_cast<std::size_t>(block_grid(band.shape, format_.block).columns));
  for (std::int64_t i = 0; i < band.shape.rows; ++i) add_to_maxima(row(i), format_.block.columns, maxima);

  detail::RowCounter rows = row_counter(format_, tensor_);
  rows.exponents = exponents_;
  rows.stream = stream_;
  std::vector<BlockScale> scales(maxima.size());
  for (std::size_t i = 0; i < maxima.size(); ++i) {
    const auto range = detail::block_range(band.shape, format_.block, static_cast<std::int64_t>(i));
    const bool has_infinity = maxima[i].number == infinity_bits;
    scales[i] = format_.rule->choice == ScaleChoice::single
                    ? scale_of(maxima[i], format_, tensor_)
                    : detail::choose_scale(band.values, range, format_, tensor_, tensor_amax_);
    count_scale(scales[i], format_.scale(), counts);
    const float amax = has_infinity ? finite_maximum(band.values, range) : from_bits(maxima[i].number);
    count_block({maxima[i], amax, scales[i], format_.rule->step}, rows.limits, counts);
  }
  for (std::int64_t i = 0; i < band.shape.rows; ++i)
    rows.add(row(i), {scales, format_.block.columns, format_.rule->step}, band.first + i * band.row_stride,
             counts);
}

void count_cast(const CountedPart& part, const Quantizer& quantizer, const BlockScale& scale,
                BlockCounts& counts) {
  detail::RowCounter rows{.element = quantizer,
                          .limits = element_limits(quantizer.format, ScaleFormat::e8m0)};
  rows.element.overflow = Overflow::saturate;
  const std::int64_t stride = part.row_stride == 0 ? part.shape.columns : part.row_stride;
  const auto columns = static_cast<std::size_t>(part.shape.columns);
  for (std::int64_t i = 0; i < part.shape.rows; ++i) {
    const auto row = part.values.subspan(static_cast<std::size_t>(i) * columns, columns);
    rows.add(row, {{&scale, 1}, std::ssize(row)}, part.first + i * stride, counts);
  }
}

}  // namespace halfscope
