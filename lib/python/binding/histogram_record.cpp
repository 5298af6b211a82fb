// Copies counts into lists and back.
#include "binding/histogram_record.hpp"

#include <algorithm>
#include <halfscope/core/error.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/io/histogram_record.hpp>
#include <halfscope/kernel/histogram/binned_histogram.hpp>
#include <utility>

#include "binding/json_value.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr std::array per_binade{std::pair{"counts", &BinadeCounts::all},
                                std::pair{"pow2", &BinadeCounts::at_power_of_two},
                                std::pair{"top", &BinadeCounts::rounds_to_overflow},
                                std::pair{"subnormal_carry", &BinadeCounts::rounds_to_normal}};

std::pair<int, int> filled(const ExponentHistogram& histogram) {
  int first = lowest_binade, last = highest_binade;
  while (first < last && histogram.count(first) == 0) ++first;
  while (last > first && histogram.count(last) == 0) --last;
  return histogram.count(first) == 0 ? std::pair{lowest_binade, lowest_binade} : std::pair{first, last};
}

}  // namespace

nb::dict record_of(const ExponentHistogram& histogram) {
  const auto [first, last] = filled(histogram);
  nb::dict record;
  record["first_exponent"] = first;
  for (const auto& [key, field] : per_binade) {
    nb::list counts;
    for (int exponent = first; exponent <= last; ++exponent) counts.append(histogram.binade(exponent).*field);
    record[key] = counts;
  }
  record["zeros"] = histogram.zeros();
  record["negative_zeros"] = histogram.negative_zeros();
  record["infinities"] = histogram.infinities();
  record["nans"] = histogram.nans();
  record["max_abs"] = histogram.max_abs();
  return record;
}

ExponentHistogram histogram_of(nb::handle record) {
  return halfscope::histogram_of(json_of(record));
}

ExponentHistogram histogram_of_bins(const Bins& bins) {
  const std::span<const std::int64_t> numbers(bins.data(), bins.size());
  if (std::ranges::any_of(numbers, [](std::int64_t count) { return count < 0; }))
    throw InvalidArgument("histogram bins: a count is negative");
  if (!numbers.empty() && numbers.back() >= infinity_bits)
    throw InvalidArgument("histogram bins: max_abs is not finite");
  HistogramCounts counts;
  add_bins_to(counts, numbers, binade_edges(fp16));
  return ExponentHistogram(counts);
}

}  // namespace halfscope::python
