// The steps of a segment: scales spread over its columns, elements at their scale, rounded, counted, squared.
#include <algorithm>
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

void add_squares(const RowSums& found, BlockCounts& counts, RowSums* sums) {
  counts.signal.add(found.signal);
  counts.error.add(found.error);
  if (sums == nullptr) return;
  sums->signal += found.signal;
  sums->error += found.error;
}

RowSums squares_of(std::span<const float> known, std::span<const float> errors) {
  CosineSums sums;
  add_cosine_sums(known, errors, sums);
  return {std::accumulate(sums.xx.begin(), sums.xx.end(), 0.0),
          std::accumulate(sums.qq.begin(), sums.qq.end(), 0.0)};
}

void add_columns(std::span<const float> known, std::span<const float> errors, std::span<RowSums> columns) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    columns[i].signal += double{known[i]} * double{known[i]};
    columns[i].error += double{errors[i]} * double{errors[i]};
  }
}

void add_exponents(const ScaledRow& row, BlockCounts& counts) {
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    const float magnitude = std::abs(row.scaled[i]), scale = row.scales[i];
    const bool has_exponent = magnitude > 0 && std::isfinite(magnitude) && std::isfinite(row.values[i]);
    if (!has_exponent || !(scale > 0 && std::isfinite(scale))) continue;
    ++counts.exponents[static_cast<std::size_t>(floor_log2(magnitude) - BlockCounts::first_exponent)];
  }
}

/// Adds the exponents of numbers below the planes' binades.
void add_exponents_below(const OrdinaryRow& row, ScaleStep step, const BinadePlanes& planes,
                         BlockCounts& counts) {
  alignas(64) std::array<std::array<float, counted_segment>, 2> buffers;
  const std::size_t size = row.values.size();
  const auto scaled = std::span(buffers[0]).first(size), scales = std::span(buffers[1]).first(size);
  bring_to_scale(row.values, {row.scales, static_cast<std::int64_t>(row.columns), step}, 0, scaled, scales);
  for (const float x : scaled) {
    const std::uint32_t magnitude = magnitude_bits(x);
    if (magnitude == 0 || planes.holds(magnitude)) continue;
    ++counts.exponents[static_cast<std::size_t>(floor_log2(from_bits(magnitude)) -
                                                BlockCounts::first_exponent)];
  }
}

}  // namespace

void PartTables::settle_binades(BlockCounts& counts) {
  constexpr std::size_t offset = -126 - BlockCounts::first_exponent - 1;
  const std::size_t lowest = offset + binades.first_field;
  binades.settle(std::span(counts.exponents).subspan(lowest).first<BinadePlanes::binades>());
}

void PartTables::finish(ScaleFormat format, BlockCounts& counts) {
  settle_binades(counts);
  for (std::size_t code = 0; code < CodeTables::codes; ++code) counts.scale_codes[code] += scales.of(code);
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

void RowCounter::add(const CountedRow& row, const ScaledBlocks& blocks, PartTables& tables,
                     BlockCounts& counts) const {
  const std::int64_t columns = std::ssize(row.values);
  for (std::int64_t at = 0; at < columns; at += counted_segment) {
    const auto from = static_cast<std::size_t>(at);
    const auto size = static_cast<std::size_t>(std::min(counted_segment, columns - at));
    const bool writes = !row.rounded.empty();
    const Segment segment{{row.values.subspan(from, size),
                           row.first + at,
                           writes ? row.rounded.subspan(from, size) : std::span<float>{},
                           {},
                           row.sums,
                           row.columns.empty() ? row.columns : row.columns.subspan(from, size)},
                          at};
    // The pass over whole blocks has no errors of single elements.
    const std::optional<ScaledBlocks> whole =
        row.columns.empty() ? whole_blocks(segment, blocks) : std::nullopt;
    std::uint32_t marks = whole ? 0 : BlockMark::special;
    if (whole && blocks.are_marked)
      for (const std::uint32_t mark : whole->marks) marks |= mark;
    if ((marks & BlockMark::special) != 0) {
      add_segment(segment, blocks.scales, counts);
      if (writes) write_segment(segment, blocks.scales);
      continue;
    }
    const auto block_columns = static_cast<std::size_t>(whole->scales.columns);
    const OrdinaryRow ordinary{segment.row.values, whole->scales.blocks, block_columns};
    const bool clips = (marks & BlockMark::clips) != 0;
    if ((marks & BlockMark::overflows) != 0)
      counts.overflow += count_from(ordinary, blocks.scales.step, limits.overflow);
    const NumberCounts* const numbers =
        row.numbers.empty() ? nullptr : &row.numbers[static_cast<std::size_t>(at / counted_segment)];
    add_at_once(ordinary, {segment.row.rounded.data(), clips ? &limits.largest : nullptr, numbers}, tables,
                counts, row.sums);
  }
}

std::optional<ScaledBlocks> RowCounter::whole_blocks(const Segment& segment,
                                                     const ScaledBlocks& blocks) const {
  if (!at_once) return std::nullopt;
  const std::int64_t columns = blocks.scales.columns, size = std::ssize(segment.row.values);
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

void RowCounter::add_at_once(const OrdinaryRow& row, OrdinaryOutput out, PartTables& tables,
                             BlockCounts& counts, RowSums* sums) const {
  if (out.values == row.values.data()) {
    alignas(64) std::array<float, counted_segment> values;
    std::ranges::copy(row.values, values.begin());
    const OrdinaryRow copy{std::span(values).first(row.values.size()), row.scales, row.columns};
    return add_at_once(copy, out, tables, counts, sums);
  }
  if (exponents == ScaledExponents::counted) out.planes = &tables.binades;
  if (tables.binades.is_full(row.values.size())) tables.settle_binades(counts);
  const OrdinaryCounts found = count_ordinary(row, *at_once, limits.normal, out);
  counts.elements += std::ssize(row.values);
  counts.zeros += found.zeros;
  counts.flushed += found.zero_values - found.zeros;
  counts.subnormal += found.subnormal;
  counts.clipped += found.clipped;
  add_squares({found.signal, found.error}, counts, sums);
  if (found.is_below_planes) add_exponents_below(row, at_once->step, tables.binades, counts);
}

void RowCounter::add_segment(const Segment& segment, const RowScales& row, BlockCounts& counts) const {
  const std::span<const float> values = segment.row.values;
  alignas(64) std::array<std::array<float, counted_segment>, 5> buffers;
  const auto buffer = [&](std::size_t i) { return std::span(buffers[i]).first(values.size()); };
  const auto scales = buffer(0), scaled = buffer(1), elements = buffer(2), known = buffer(3),
             errors = buffer(4);
  bring_to_scale(values, row, segment.column, scaled, scales);
  round_elements(scaled, elements, segment.row.first);
  const ScaledRow all{values, scaled, elements, scales, tensor_scale};
  add_elements(count_elements(all, limits, known, errors), std::ssize(values), counts);
  add_squares(squares_of(known, errors), counts, segment.row.sums);
  if (!segment.row.columns.empty()) add_columns(known, errors, segment.row.columns);
  if (exponents == ScaledExponents::counted) add_exponents(all, counts);
}

void RowCounter::write_segment(const Segment& segment, const RowScales& row) const {
  SegmentScales scales;
  spread_scales(row.blocks, static_cast<std::size_t>(row.columns), static_cast<std::size_t>(segment.column),
                segment.row.values.size(), scales);
  write_values(segment.row.values, scales, *at_once, segment.row.rounded.data());
}

void RowCounter::round_elements(std::span<const float> scaled, std::span<float> elements,
                                std::int64_t first) const {
  if (element.rounding != Rounding::stochastic) return round(scaled, elements, element);
  round_stochastic_part(scaled, elements, element, stream, static_cast<std::uint64_t>(first));
}

}  // namespace halfscope::detail
