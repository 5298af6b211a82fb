// The steps of a segment: scales spread over its columns, elements at their scale, rounded, counted, squared.
#include <array>
#include <cmath>
#include <numeric>

#include <halfscope/format/detail/scale_arithmetic.hpp>
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

}  // namespace

void RowCounter::add(std::span<const float> row, const RowScales& scales, std::int64_t first,
                     BlockCounts& counts) const {
  for (std::int64_t at = 0; at < std::ssize(row); at += counted_segment) {
    const auto size = static_cast<std::size_t>(std::min(counted_segment, std::ssize(row) - at));
    add_segment({row.subspan(static_cast<std::size_t>(at), size), at, first + at}, scales, counts);
  }
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
  for (std::size_t i = 0; i < scaled.size(); ++i)
    elements[i] = round(scaled[i], element, rounding_bits(stream, static_cast<std::uint64_t>(first) + i));
}

}  // namespace halfscope::detail
