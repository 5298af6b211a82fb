// The counting of blocks: the scales of a band of rows, then the rows of it.
#include <halfscope/stats/detail/block_counter.hpp>

#include <cmath>
#include <vector>

#include <halfscope/format/encoding.hpp>
#include <halfscope/kernel/block/detail/block_element.hpp>
#include <halfscope/kernel/block/detail/tile.hpp>
#include <halfscope/stats/detail/row_counter.hpp>

namespace halfscope {

namespace detail {

/// The blocks of a band: their maxima, their largest finite magnitudes, their scales, and their marks.
struct BandBlocks {
  std::vector<BlockMaxima> maxima;
  std::vector<float> amax;
  std::vector<BlockScale> scales;
  std::vector<std::uint32_t> marks;

  explicit BandBlocks(std::size_t count) : maxima(count), amax(count), scales(count), marks(count) {}
};

}  // namespace detail

namespace {

/// Limits of a format; the FP32 steps of a rule may exceed the largest number a little without clipping.
ElementLimits element_limits(const FloatFormat& element, ScaleFormat scale) {
  const auto limit = static_cast<float>(overflow_limit(element));
  const float largest = from_bits(element.max_finite_bits());
  return {.normal = static_cast<float>(power_of_two(element.min_exponent())),
          .largest = scale == ScaleFormat::e8m0 ? largest : largest * (1 + 0x1p-21f),
          .overflow = limit_overflows(element) ? limit : std::nextafter(limit, from_bits(infinity_bits))};
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

void count_fp32_scales(std::span<const BlockScale> scales, detail::PartTables& tables, BlockCounts& counts) {
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const BlockScale& scale = scales[i];
    ++tables.scales.counts[i % CodeTables::tables][scale.code >> 23 & 0xFFu];
    counts.zero_scales += scale.value == 0 ? 1 : 0;
    counts.nan_scales += std::isfinite(scale.value) ? 0 : 1;
    counts.least_scales += scale.code == 1 ? 1 : 0;
    counts.largest_scales += scale.code == infinity_bits - 1 ? 1 : 0;
  }
}

void count_codes(std::span<const BlockScale> scales, detail::PartTables& tables) {
  std::uint32_t table = 0;
  for (const BlockScale& scale : scales) ++tables.scales.counts[table++ % CodeTables::tables][scale.code];
}

/// The same. Returns whether none of the blocks has a mark, nor zeros alone.
bool count_unmarked(const detail::BandBlocks& blocks, const MarkLimits& limits, detail::PartTables& tables) {
  const BlockScale* scale = blocks.scales.data();
  std::uint32_t are_marked = 0, table = 0;
  for (const BlockMaxima& maxima : blocks.maxima) {
    std::uint32_t& first = tables.first_marked[scale->code];
    if (first == 0) [[unlikely]]
      first = first_marked(*scale, limits);
    are_marked |= maxima.any - 1 >= first - 1 ? 1u : 0u;  // zeros are beyond all of them
    ++tables.scales.counts[table++ % CodeTables::tables][scale->code];
    ++scale;
  }
  return are_marked == 0;
}

/// The largest finite magnitudes of a band's blocks.
void find_finite_maxima(const CountedPart& band, const BlockShape& block, detail::BandBlocks& blocks) {
  for (std::size_t i = 0; i < blocks.amax.size(); ++i) {
    const std::uint32_t largest = blocks.maxima[i].number;
    blocks.amax[i] = from_bits(largest);
    if (largest != infinity_bits) continue;
    const detail::BlockRange range = detail::block_range(band.shape, block, static_cast<std::int64_t>(i));
    blocks.amax[i] = finite_maximum(band.values, range);
  }
}

MarkLimits mark_limits(const BlockFormat& format, const detail::RowCounter& rows) {
  return {rows.limits, from_bits(rows.element.format.max_finite_bits()), rows.tensor_scale, format.rule->step,
          BinadePlanes::end_of(rows.element.format)};
}

KindsOfBlocks mark_blocks(const CountedPart& band, const BlockShape& block, const MarkLimits& limits,
                          detail::BandBlocks& blocks) {
  const BlocksToMark to_mark{blocks.maxima, blocks.amax, blocks.scales};
  KindsOfBlocks kinds;
  if (mark_ordinary_blocks(to_mark, limits, blocks.marks, kinds)) return kinds;
  find_finite_maxima(band, block, blocks);
  return mark_blocks(to_mark, limits, blocks.marks);
}

void add_kinds(const KindsOfBlocks& kinds, BlockCounts& counts) {
  counts.zero_blocks += kinds.zero;
  counts.nonfinite_blocks += kinds.nonfinite;
  counts.clipped_blocks += kinds.clipped;
  counts.overflow_blocks += kinds.overflow;
  counts.blocks_at_risk += kinds.at_risk;
}

detail::RowCounter row_counter(const BlockFormat& format, const TensorFactors& tensor) {
  detail::RowCounter rows{.element = format.element,
                          .tensor_scale = format.tensor_scale == TensorScale::none ? 1 : tensor.scale,
                          .limits = element_limits(format.element.format, format.scale())};
  const SegmentRounding rounding(format, tensor);
  if (format.element.rounding == Rounding::nearest_even && rounding.takes_ordinary) rows.at_once = rounding;
  return rows;
}

}  // namespace

std::vector<NumberCounts> numbers_of_segments(const CountedPart& part) {
  constexpr auto segment = static_cast<std::size_t>(counted_segment);
  std::vector<NumberCounts> all;
  all.reserve(static_cast<std::size_t>(part.shape.rows) * part.segments());
  for (std::int64_t i = 0; i < part.shape.rows; ++i) {
    const std::span<const float> row = part.row(i);
    for (std::size_t at = 0; at < row.size(); at += segment)
      all.push_back(count_numbers(row.subspan(at, std::min(segment, row.size() - at))));
  }
  return all;
}

BlockCounter::BlockCounter(const BlockFormat& format, float tensor_amax, ScaledExponents exponents,
                           const RandomStream& stream)
    : format_(format),
      tensor_amax_(tensor_amax),
      tensor_(detail::tensor_factors(tensor_amax, format)),
      scaler_(format_, tensor_),
      exponents_(exponents),
      stream_(stream) {}

bool BlockCounter::rounds() const {
  return detail::rounds_in_segments(format_) && row_counter(format_, tensor_).at_once;
}

void BlockCounter::add(const CountedPart& part, BlockCounts& counts) const {
  detail::RowCounter rows = row_counter(format_, tensor_);
  rows.exponents = exponents_;
  rows.stream = stream_;
  detail::PartTables tables(format_.element.format);
  detail::BandBlocks blocks(static_cast<std::size_t>(block_grid(part.shape, format_.block).columns));
  for (std::int64_t row = 0; row < part.shape.rows; row += format_.block.rows) {
    const std::int64_t height = std::min<std::int64_t>(format_.block.rows, part.shape.rows - row);
    const CountedPart band = part.rows(row, height);
    scale_band(band, blocks);
    count_band(band, rows, blocks, tables, counts);
  }
  tables.finish(format_.scale(), counts);
}

void BlockCounter::scale_band(const CountedPart& band, detail::BandBlocks& blocks) const {
  const std::int64_t columns = band.shape.columns;
  find_maxima({band.values.data(), band.shape.rows, columns, columns, format_.block.columns}, blocks.maxima);
  if (format_.rule->choice == ScaleChoice::single) return scaler_.scale(blocks.maxima, blocks.scales);
  for (std::size_t i = 0; i < blocks.scales.size(); ++i) {
    const auto range = detail::block_range(band.shape, format_.block, static_cast<std::int64_t>(i));
    blocks.scales[i] = detail::choose_scale(band.values, range, format_, tensor_, tensor_amax_);
  }
}

void BlockCounter::count_band(const CountedPart& band, const detail::RowCounter& rows,
                              detail::BandBlocks& blocks, detail::PartTables& tables,
                              BlockCounts& counts) const {
  const MarkLimits limits = mark_limits(format_, rows);
  bool are_marked = true;
  switch (format_.scale()) {
    case ScaleFormat::fp32:
      count_fp32_scales(blocks.scales, tables, counts);
      break;
    case ScaleFormat::e8m0:
      are_marked = !count_unmarked(blocks, limits, tables);
      break;
    default:  // rounded to the nearest, UE4M3 scales make half of the blocks clip
      count_codes(blocks.scales, tables);
  }
  if (are_marked) add_kinds(mark_blocks(band, format_.block, limits, blocks), counts);
  counts.blocks += std::ssize(blocks.scales);
  const RowScales scales{blocks.scales, format_.block.columns, format_.rule->step};
  const detail::ScaledBlocks scaled{scales, blocks.marks, are_marked};
  for (std::int64_t i = 0; i < band.shape.rows; ++i)
    rows.add({band.row(i), band.first_of(i), band.rounded_row(i), band.numbers_of(i, 1), band.sums_of(i),
              band.columns},
             scaled, tables, counts);
}

void count_cast(const CountedPart& part, const Quantizer& quantizer, const BlockScale& scale,
                ScaledExponents exponents, BlockCounts& counts) {
  BlockFormat format{.element = quantizer, .block = {1, static_cast<int>(counted_segment)}};
  format.element.overflow = Overflow::saturate;
  detail::RowCounter rows = row_counter(format, {});
  rows.exponents = exponents;
  detail::PartTables tables(quantizer.format);
  const MatrixShape row{1, part.shape.columns};
  detail::BandBlocks blocks(static_cast<std::size_t>(block_grid(row, format.block).columns));
  std::ranges::fill(blocks.scales, scale);
  for (std::int64_t i = 0; i < part.shape.rows; ++i) {
    find_row_maxima(part.row(i), counted_segment, blocks.maxima);
    (void)mark_blocks(part.rows(i, 1), format.block, mark_limits(format, rows), blocks);
    rows.add({part.row(i), part.first_of(i), {}, part.numbers_of(i, 1), part.sums_of(i), part.columns},
             {{blocks.scales, counted_segment}, blocks.marks}, tables, counts);
  }
  tables.settle_binades(counts);
}

}  // namespace halfscope
