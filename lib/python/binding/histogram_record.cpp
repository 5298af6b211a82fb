// Dictionaries from histograms and back, by way of their JSON.
#include "binding/histogram_record.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <bit>
#include <halfscope/core/error.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/io/json/histogram_json.hpp>
#include <halfscope/kernel/histogram/binned_histogram.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "binding/floats.hpp"
#include "binding/json_value.hpp"

namespace halfscope::python {
namespace nb = nanobind;

nb::dict record_of(const ExponentHistogram& histogram) {
  const nb::object loads = nb::module_::import_("json").attr("loads");
  auto record = nb::cast<nb::dict>(loads("{" + histogram_members(histogram) + "}"));
  record["max_abs"] = histogram.max_abs();
  if (histogram.format() != fp16) record["format"] = to_string(histogram.format());
  return record;
}

ExponentHistogram histogram_of(nb::handle record) {
  return halfscope::histogram_of(json_of(record));
}

ExponentHistogram histogram_of_bins(const Bins& bins, const std::string& format) {
  const FloatFormat parsed = parse_format(format);
  const std::span<const std::int64_t> numbers(bins.data(), bins.size());
  if (std::ranges::any_of(numbers, [](std::int64_t count) { return count < 0; }))
    throw InvalidArgument("histogram bins: a count is negative");
  if (!numbers.empty() && numbers.back() >= infinity_bits)
    throw InvalidArgument("histogram bins: max_abs is not finite");
  HistogramCounts counts;
  add_bins_to(counts, numbers, binade_edges(parsed));
  return ExponentHistogram(counts, parsed);
}

nb::object numbers_of(const ExponentHistogram& histogram) {
  auto numbers = std::make_unique<std::int64_t[]>(histogram_numbers);
  std::int64_t* next = numbers.get();
  const HistogramCounts& counts = histogram.counts();
  for (const BinadeCounts& binade : counts.binades) {
    for (const std::int64_t count :
         {binade.all, binade.at_power_of_two, binade.rounds_to_overflow, binade.rounds_to_normal})
      *next++ = count;
  }
  for (const std::int64_t count : {counts.zeros, counts.negative_zeros, counts.infinities, counts.nans,
                                   std::int64_t{std::bit_cast<std::uint32_t>(counts.max_abs)}})
    *next++ = count;
  return to_array(std::move(numbers), {histogram_numbers}, nb::none());
}

ExponentHistogram histogram_of_numbers(const Bins& numbers, const std::string& format) {
  if (numbers.size() != histogram_numbers)
    throw InvalidArgument(
        fmt::format("histogram numbers: {}; {} are expected", numbers.size(), histogram_numbers));
  HistogramCounts counts;
  const std::int64_t* next = numbers.data();
  for (BinadeCounts& binade : counts.binades) {
    for (std::int64_t* count :
         {&binade.all, &binade.at_power_of_two, &binade.rounds_to_overflow, &binade.rounds_to_normal})
      *count = *next++;
  }
  for (std::int64_t* count : {&counts.zeros, &counts.negative_zeros, &counts.infinities, &counts.nans})
    *count = *next++;
  counts.max_abs = std::bit_cast<float>(static_cast<std::uint32_t>(*next));
  return ExponentHistogram(counts, parse_format(format));
}

}  // namespace halfscope::python
