// Merging and summing exponent histograms.
#include <halfscope/stats/exponent_histogram.hpp>

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

#include <halfscope/core/parallel.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/histogram/code_counts.hpp>
#include <halfscope/stats/detail/code_summary.hpp>

namespace halfscope {

void ExponentHistogram::merge(const ExponentHistogram& other, std::int64_t times) {
  if (format_ != other.format_) {
    throw InvalidArgument("histograms for " + to_string(format_) + " and " + to_string(other.format_) +
                          " count at different edges; count both for one format");
  }
  for (std::size_t i = 0; i < counts_.binades.size(); ++i) {
    BinadeCounts& mine = counts_.binades[i];
    const BinadeCounts& theirs = other.counts_.binades[i];
    mine.all += times * theirs.all;
    mine.at_power_of_two += times * theirs.at_power_of_two;
    mine.rounds_to_overflow += times * theirs.rounds_to_overflow;
    mine.rounds_to_normal += times * theirs.rounds_to_normal;
  }
  counts_.zeros += times * other.counts_.zeros;
  counts_.negative_zeros += times * other.counts_.negative_zeros;
  counts_.infinities += times * other.counts_.infinities;
  counts_.nans += times * other.counts_.nans;
  counts_.max_abs = std::max(counts_.max_abs, other.counts_.max_abs);
}

BinadeCounts ExponentHistogram::binade(int exponent) const {
  if (exponent < first_exponent || exponent > last_exponent) return {};
  return counts_.binades[static_cast<std::size_t>(exponent - first_exponent)];
}

std::int64_t ExponentHistogram::nonzero() const {
  std::int64_t sum = 0;
  for (const BinadeCounts& binade : counts_.binades) sum += binade.all;
  return sum;
}

std::int64_t ExponentHistogram::elements() const {
  return nonzero() + zeros() + infinities() + nans();
}

namespace {

/// Calls add(counts, first, size) for parts of `size` elements, each in a thread and, if there are several,
/// with a copy of `empty`.
template <typename Counts, typename Add>
void add_parts(Counts& counts, const Counts& empty, std::size_t size, Add&& add) {
  constexpr std::size_t least = std::size_t{1} << 16;  // elements worth a thread
  const std::size_t parts = std::min(static_cast<std::size_t>(thread_count()), size / least);
  if (parts < 2) return add(counts, std::size_t{0}, size);
  std::vector<Counts> found(parts, empty);
  parallel_for(static_cast<std::int64_t>(parts), [&](std::int64_t index) noexcept {
    const auto part = static_cast<std::size_t>(index);
    const std::size_t first = size * part / parts, end = size * (part + 1) / parts;
    add(found[part], first, end - first);
  });
  for (const Counts& part : found) counts.merge(part);
}

bool is_aligned(const std::byte* elements) {
  return std::bit_cast<std::uintptr_t>(elements) % alignof(float) == 0;
}

void add_widened(ExponentHistogram& histogram, DType type, const std::byte* elements, std::size_t size) {
  constexpr std::size_t block = 65536;  // `histogram` empties its tables after as many
  const auto buffer = std::make_unique_for_overwrite<float[]>(std::min(block, size));
  for (std::size_t first = 0; first < size; first += block) {
    const std::span values(buffer.get(), std::min(block, size - first));
    widen(type, elements + first * bytes_per_element(type), values);
    histogram.add(values);
  }
}

/// Whether counting codes takes less time, although a table of all codes is read at the end for each thread.
bool pays_by_code(DType type, std::size_t size) {
  constexpr std::size_t least = std::size_t{1} << 18;  // elements for each thread
  return has_few_codes(type) && size >= least * static_cast<std::size_t>(thread_count());
}

void add_by_code(ExponentHistogram& histogram, DType type, const std::byte* elements, std::size_t size) {
  const std::size_t width = bytes_per_element(type);
  const CodeCounts empty(width);
  CodeCounts codes = empty;
  add_parts(codes, empty, size, [&](CodeCounts& part, std::size_t first, std::size_t count) {
    part.add(std::span(elements + first * width, count * width));
  });
  codes.settle();
  HistogramCounts found;
  add_codes(codes, numbers_of_codes(type), found, binade_edges(histogram.format()));
  histogram.merge(ExponentHistogram(found, histogram.format()));
}

}  // namespace

void add_in_threads(ExponentHistogram& histogram, std::span<const float> values) {
  if (active_device() == Device::cuda) return histogram.add(values);
  add_parts(histogram, ExponentHistogram(histogram.format()), values.size(),
            [&](ExponentHistogram& part, std::size_t first, std::size_t size) {
              part.add(values.subspan(first, size));
            });
}

void add_in_threads(ExponentHistogram& histogram, DType type, const std::byte* elements, std::size_t size) {
  if (type == DType::f32 && is_aligned(elements))
    return add_in_threads(histogram, std::span(reinterpret_cast<const float*>(elements), size));
  if (pays_by_code(type, size)) return add_by_code(histogram, type, elements, size);
  add_parts(histogram, ExponentHistogram(histogram.format()), size,
            [&](ExponentHistogram& part, std::size_t first, std::size_t count) {
              add_widened(part, type, elements + first * bytes_per_element(type), count);
            });
}

}  // namespace halfscope
