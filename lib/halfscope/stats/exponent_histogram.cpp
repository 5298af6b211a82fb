// Merging and summing exponent histograms.
#include <halfscope/stats/exponent_histogram.hpp>

#include <algorithm>
#include <vector>

#include <halfscope/core/parallel.hpp>
#include <halfscope/format/quantizer.hpp>

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

void add_in_threads(ExponentHistogram& histogram, std::span<const float> values) {
  constexpr std::size_t least = std::size_t{1} << 16;  // elements worth a thread
  const std::size_t parts = std::min(static_cast<std::size_t>(thread_count()), values.size() / least);
  if (parts < 2 || active_device() == Device::cuda) return histogram.add(values);
  std::vector<ExponentHistogram> found(parts, ExponentHistogram(histogram.format()));
  parallel_for(static_cast<std::int64_t>(parts), [&](std::int64_t index) noexcept {
    const auto part = static_cast<std::size_t>(index);
    const std::size_t first = values.size() * part / parts, end = values.size() * (part + 1) / parts;
    found[part].add(values.subspan(first, end - first));
  });
  for (const ExponentHistogram& part : found) histogram.merge(part);
}

}  // namespace halfscope
