// Records as dictionaries: finds and adds their members.
#include "binding/histogram_record.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <halfscope/core/error.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/histogram/binned_histogram.hpp>
#include <halfscope/stats/histogram_record.hpp>

namespace halfscope::python {
namespace nb = nanobind;
namespace {

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

}  // namespace

nb::dict record_of(const ExponentHistogram& histogram) {
  nb::dict record;
  const auto add = [&](const char* key, std::int64_t value) { record[key] = value; };
  const auto add_list = [&](const char* key, std::span<const std::int64_t> values) {
    nb::list list;
    for (const std::int64_t value : values) list.append(value);
    record[key] = list;
  };
  write_record(histogram, {add, add_list});
  record["max_abs"] = histogram.max_abs();
  return record;
}

ExponentHistogram histogram_of(nb::handle record) {
  using List = std::vector<std::int64_t>;
  HistogramCounts counts =
      read_record({[&](const char* key) { return member<std::int64_t>(record, key, "an integer"); },
                   [&](const char* key) { return member<List>(record, key, "a list of integers"); }});
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
