// Dictionaries from histograms and back, by way of their JSON.
#include "binding/histogram_record.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <halfscope/core/error.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/io/json/histogram_json.hpp>
#include <halfscope/kernel/histogram/binned_histogram.hpp>
#include <nlohmann/json.hpp>

#include "binding/json_value.hpp"

namespace halfscope::python {
namespace nb = nanobind;

nb::dict record_of(const ExponentHistogram& histogram) {
  const nb::object loads = nb::module_::import_("json").attr("loads");
  auto record = nb::cast<nb::dict>(loads("{" + histogram_members(histogram) + "}"));
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
