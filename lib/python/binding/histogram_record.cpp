// Copies counts into lists and back.
#include "binding/histogram_record.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <halfscope/core/error.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/histogram/binned_histogram.hpp>
#include <utility>

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr std::array per_binade{std::pair{"counts", &BinadeCounts::all},
                                std::pair{"pow2", &BinadeCounts::at_power_of_two},
                                std::pair{"top", &BinadeCounts::rounds_to_overflow},
                                std::pair{"subnormal_carry", &BinadeCounts::rounds_to_normal}};
constexpr std::array beside_binades{std::pair{"zeros", &HistogramCounts::zeros},
                                    std::pair{"negative_zeros", &HistogramCounts::negative_zeros},
                                    std::pair{"infinities", &HistogramCounts::infinities},
                                    std::pair{"nans", &HistogramCounts::nans}};

/// The member `key` of a record as a `Value`.
template <typename Value>
Value member(nb::handle record, const char* key, const char* expected) {
  Value value{};
  const nb::str name(key);
  if (!PyMapping_Check(record.ptr()) || PyMapping_HasKey(record.ptr(), name.ptr()) == 0) {
    throw InvalidArgument(fmt::format("histogram record: it lacks '{}'", key));
  }
  const nb::object found = record[name];
  if (!nb::try_cast(found, value)) {
    throw InvalidArgument(fmt::format("histogram record: {} = {}; expected {}", key,
                                      nb::cast<std::string>(nb::repr(found)), expected));
  }
  return value;
}

std::int64_t count_of(nb::handle record, const char* key) {
  const auto count = member<std::int64_t>(record, key, "an integer");
  if (count < 0) throw InvalidArgument(fmt::format("histogram record: {} = {} is negative", key, count));
  return count;
}

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
  using Counts = std::vector<std::int64_t>;
  HistogramCounts counts;
  const auto all = member<Counts>(record, "counts", "a list of integers");
  const auto first = member<std::int64_t>(record, "first_exponent", "an integer") - lowest_binade;
  const auto room = static_cast<std::int64_t>(counts.binades.size());
  if (first < 0 || first + static_cast<std::int64_t>(all.size()) > room) {
    throw InvalidArgument("histogram record: binades outside -149 to 127");
  }
  for (const auto& [key, field] : per_binade) {
    const auto list = member<Counts>(record, key, "a list of integers");
    if (list.size() != all.size()) {
      throw InvalidArgument(
          fmt::format("histogram record: {} has {} binades, counts has {}", key, list.size(), all.size()));
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool possible = list[i] >= 0 && list[i] <= all[i];
      if (!possible)
        throw InvalidArgument(fmt::format("histogram record: {}: {} of {}", key, list[i], all[i]));
      counts.binades[static_cast<std::size_t>(first) + i].*field = list[i];
    }
  }
  for (const auto& [key, field] : beside_binades) counts.*field = count_of(record, key);
  if (PyMapping_HasKeyString(record.ptr(), "max_abs") != 0) {
    counts.max_abs = member<float>(record, "max_abs", "a number");
  }
  return ExponentHistogram(counts);
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
