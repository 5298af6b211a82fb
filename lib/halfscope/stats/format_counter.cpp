// A counter for each format of a tensor, and one scale for the formats without blocks.
#include <halfscope/stats/detail/format_counter.hpp>

#include <cmath>

#include <halfscope/format/encoding.hpp>
#include <halfscope/kernel/block/detail/maxima.hpp>

namespace halfscope {
namespace {

constexpr int widest_scaled = 8;  // bits

/// 1 for a tensor of zeros.
BlockScale scale_of_cast(const FloatFormat& format, float amax) {
  if (amax == 0) return {.code = e8m0::bias, .value = 1, .factor = 1};
  return scales_rceil({.amax = amax, .element = format}).first;
}

}  // namespace

void TensorMaximum::add(std::span<const float> values) {
  BlockMaxima found;
  find_row_maxima(values, std::max<std::int64_t>(1, std::ssize(values)), {&found, 1});
  const float largest = from_bits(found.number);
  any = std::max(any, largest);
  if (std::isfinite(largest)) {
    finite = std::max(finite, largest);
    return;
  }
  for (const float x : values) {
    if (std::isfinite(x)) finite = std::max(finite, std::abs(x));
  }
}

void TensorMaximum::merge(const TensorMaximum& other) {
  any = std::max(any, other.any);
  finite = std::max(finite, other.finite);
}

FormatCounter::FormatCounter(std::span<const TensorFormat> formats, const TensorMaximum& maximum,
                             ScaledExponents exponents)
    : exponents_(exponents) {
  for (const TensorFormat& format : formats) {
    Entry& entry = entries_.emplace_back();
    if (const auto* block = std::get_if<BlockFormat>(&format)) {
      entry.blocks.emplace(*block, maximum.any, exponents);
      continue;
    }
    entry.cast = std::get<Quantizer>(format);
    if (code_width(entry.cast.format) > widest_scaled) continue;
    entry.scale = scale_of_cast(entry.cast.format, maximum.finite);
    entry.scale_log2 = static_cast<int>(entry.scale.code) - static_cast<int>(e8m0::bias);
  }
}

void FormatCounter::add(const CountedPart& all, std::vector<BlockCounts>& found, SumsByFormat& sums) const {
  found.resize(entries_.size());
  sums.assign(entries_.size(), std::vector<RowSums>(static_cast<std::size_t>(all.shape.rows)));
  std::vector<NumberCounts> numbers;
  CountedPart part = all;
  if (entries_.size() > 1) {
    numbers = numbers_of_segments(part);
    part.numbers = numbers;
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    part.sums = sums[i];
    count(entries_[i], part, found[i]);
  }
}

void FormatCounter::add_columns(const CountedPart& all, SumsByFormat& columns) const {
  columns.resize(entries_.size(), std::vector<RowSums>(static_cast<std::size_t>(all.shape.columns)));
  CountedPart part = all;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    BlockCounts found;
    part.columns = columns[i];
    count(entries_[i], part, found);
  }
}

void FormatCounter::count(const Entry& entry, const CountedPart& part, BlockCounts& found) const {
  entry.blocks ? entry.blocks->add(part, found)
               : count_cast(part, entry.cast, entry.scale, exponents_, found);
}

std::vector<FormatCounts> FormatCounter::finish(std::vector<BlockCounts> found) const {
  found.resize(entries_.size());
  std::vector<FormatCounts> all;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    BlockCounts& counts = all.emplace_back(FormatCounts{found[i], entries_[i].scale_log2}).counts;
    if (entries_[i].blocks || counts.elements == 0) continue;
    counts.blocks = 1;
    counts.zero_blocks = counts.zeros == counts.elements ? 1 : 0;
    counts.clipped_blocks = counts.clipped > 0 ? 1 : 0;
    counts.overflow_blocks = counts.overflow > 0 ? 1 : 0;
    counts.nonfinite_blocks = counts.nonfinite > 0 ? 1 : 0;
    counts.blocks_at_risk = counts.overflow > 0 || counts.nonfinite > 0 ? 1 : 0;
  }
  return all;
}

}  // namespace halfscope
