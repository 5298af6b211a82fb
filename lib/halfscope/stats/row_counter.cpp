// The steps of a segment: scales spread over its columns, elements at their scale, rounded, counted, squared.
#include <array>
#include <cmath>
#include <numeric>

#include <halfscope/format/detail/scale_arithmetic.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/kernel/reduce/cosine.hpp>
#include <halfscope/stats/detail/row_counter.hpp>

namespace halfscope::detail {
namespace {

void add_elements(const ElementCounts& found, std::int64_t elements, BlockCounts& counts) {
  counts.elements += elements;
  counts.zeros += found.zeros;
  counts.nonfinite += found.nonfinite;
  counts.lost += found.lost;
  counts.flushed += found.flushed;
  counts.flushed_by_scale += found.flushed_by_scale;
  counts.subnormal += found.subnormal;
  counts.clipped += found.clipped;
  counts.overflow += found.overflow;
}

void add_squares(std::span<const float> known, std::span<const float> errors, BlockCounts& counts) {
  CosineSums sums;
  add_cosine_sums(known, errors, sums);
  counts.signal.add(std::accumulate(sums.xx.begin(), sums.xx.end(), 0.0));
  counts.error.add(std::accumulate(sums.qq.begin(), sums.qq.end(), 0.0));
}

void add_exponents(const ScaledRow& row, BlockCounts& counts) {
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    const float magnitude = std::abs(row.scaled[i]), scale = row.scales[i];
    const bool has_exponent = magnitude > 0 && std::isfinite(magnitude) && std::isfinite(row.values[i]);
    if (!has_exponent || !(scale > 0 && std::isfinite(scale))) continue;
    ++counts.exponents[static_cast<std::size_t>(floor_log2(magnitude) - BlockCounts::first_exponent)];
  }
}

void add_subnormal_exponents(std::span<const float> scaled, BlockCounts& counts) {
  for (const float x : scaled) {
    const std::uint32_t magnitude = magnitude_bits(x);
    if (magnitude == 0 || magnitude >> 23 != 0) continue;
    ++counts.exponents[static_cast<std::size_t>(floor_log2(from_bits(magnitude)) -
                                                BlockCounts::first_exponent)];
  }
}

}  // namespace

void CodeTables::finish(ScaleFormat format, BlockCounts& counts) const {
  constexpr std::size_t offset = -126 - BlockCounts::first_exponent - 1, infinity = 255;
  for (std::size_t field = 1; field < infinity; ++field) counts.exponents[field + offset] += fields.of(field);
  for (std::size_t code = 0; code < FieldTables::fields; ++code) counts.scale_codes[code] += scales.of(code);
  if (format == ScaleFormat::e8m0) {
    counts.least_scales += scales.of(0);
    counts.largest_scales += scales.of(e8m0::largest_code);
    counts.nan_scales += scales.of(e8m0::nan_code);
  } else if (format == ScaleFormat::ue4m3) {
    counts.zero_scales += scales.of(0);
    counts.least_scales += scales.of(1);
    counts.largest_scales += scales.of(ue4m3.max_finite_code());
    counts.nan_scales += scales.of(nan_code(ue4m3));
  }
}

void RowCounter::add(std::span<const float> row, const ScaledBlocks& blocks, std::int64_t first,
                     CodeTables& tables, BlockCounts& counts) const {
  for (std::int64_t at = 0; at < std::ssize(row); at += counted_segment) {
    const auto size = static_cast<std::size_t>(std::min(counted_segment, std::ssize(row) - at));
    const Segment segment{row.subspan(static_cast<std::size_t>(at), size), at, first + at};
    const std::optional<ScaledBlocks> whole = whole_blocks(segment, blocks);
    std::uint8_t marks = whole ? 0 : BlockMark::special;
    for (const std::uint8_t mark : whole ? whole->marks : std::span<const std::uint8_t>{}) marks |= mark;
    if ((marks & BlockMark::special) != 0) {
      add_segment(segment, blocks.scales, counts);
      continue;
    }
    const auto columns = static_cast<std::size_t>(whole->scales.columns);
    const OrdinaryRow ordinary{segment.values, whole->scales.blocks, columns};
    add_at_once(ordinary, tables, counts);
    if ((marks & BlockMark::clips) != 0) add_beyond(ordinary, blocks.scales.step, counts);
  }
}

std::optional<ScaledBlocks> RowCounter::whole_blocks(const Segment& segment,
                                                     const ScaledBlocks& blocks) const {
  if (!at_once) return std::nullopt;
  const std::int64_t columns = blocks.scales.columns, size = std::ssize(segment.values);
  const std::int64_t first = segment.column / columns, in_block = segment.column % columns;
  const auto part = [&](std::int64_t count, std::int64_t of) {
    const auto from = static_cast<std::size_t>(first), number = static_cast<std::size_t>(count);
    return ScaledBlocks{{blocks.scales.blocks.subspan(from, number), of, blocks.scales.step},
                        blocks.marks.subspan(from, number)};
  };
  if (in_block + size <= columns) return part(1, counted_segment);
  if (in_block != 0 || columns % ordinary_step != 0) return std::nullopt;
  return part((size + columns - 1) / columns, columns);
}

void RowCounter::add_at_once(const OrdinaryRow& row, CodeTables& tables, BlockCounts& counts) const {
  const bool has_exponents = exponents == ScaledExponents::counted;
  alignas(64) std::array<float, counted_segment> scaled;
  const OrdinaryCounts found =
      count_ordinary(row, *at_once, limits.normal, has_exponents ? scaled.data() : nullptr);
  counts.elements += std::ssize(row.values);
  counts.zeros += found.zeros;
  counts.flushed += found.zero_values - found.zeros;
  counts.subnormal += found.subnormal;
  counts.signal.add(found.signal);
  counts.error.add(found.error);
  if (!has_exponents) return;
  const std::span<const float> at_scale = std::span(scaled).first(row.values.size());
  const std::int64_t below_normal = tables.fields.of(0);
  tables.fields.add(at_scale);
  // Most often zeros alone have the field 0.
  if (tables.fields.of(0) - below_normal > found.zeros) add_subnormal_exponents(at_scale, counts);
}

void RowCounter::add_beyond(const OrdinaryRow& row, ScaleStep step, BlockCounts& counts) const {
  const BeyondCounts beyond = count_beyond(row, step, limits);
  counts.clipped += beyond.clipped;
  counts.overflow += beyond.overflow;
}

void RowCounter::add_segment(const Segment& segment, const RowScales& row, BlockCounts& counts) const {
  const std::span<const float> values = segment.values;
  alignas(64) std::array<std::array<float, counted_segment>, 5> buffers;
  const auto buffer = [&](std::size_t i) { return std::span(buffers[i]).first(values.size()); };
  const auto scales = buffer(0), scaled = buffer(1), elements = buffer(2), known = buffer(3),
             errors = buffer(4);
  bring_to_scale(values, row, segment.column, scaled, scales);
  round_elements(scaled, elements, segment.first);
  const ScaledRow all{values, scaled, elements, scales, tensor_scale};
  add_elements(count_elements(all, limits, known, errors), std::ssize(values), counts);
  add_squares(known, errors, counts);
  if (exponents == ScaledExponents::counted) add_exponents(all, counts);
}

void RowCounter::round_elements(std::span<const float> scaled, std::span<float> elements,
                                std::int64_t first) const {
  if (element.rounding != Rounding::stochastic) return round(scaled, elements, element);
  round_stochastic_part(scaled, elements, element, stream, static_cast<std::uint64_t>(first));
}

}  // namespace halfscope::detail
