// Reads counts from JSON.
#include <halfscope/io/histogram_record.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/core/error.hpp>

namespace halfscope {
namespace {

const Json& member(const Json& record, const char* key) {
  const auto found = record.is_object() ? record.find(key) : record.end();
  if (!record.is_object() || found == record.end()) {
    throw InvalidArgument(fmt::format("histogram record: it lacks '{}'", key));
  }
  return *found;
}

InvalidArgument unexpected(const char* key, const Json& found, const char* expected) {
  return InvalidArgument(
      fmt::format("histogram record: {} = {}; expected {}", key, to_line(found), expected));
}

std::int64_t integer(const Json& record, const char* key) {
  const Json& value = member(record, key);
  if (!value.is_number_integer()) throw unexpected(key, value, "an integer");
  return value.get<std::int64_t>();
}

std::int64_t count(const Json& record, const char* key) {
  const std::int64_t value = integer(record, key);
  if (value < 0) throw InvalidArgument(fmt::format("histogram record: {} = {} is negative", key, value));
  return value;
}

const Json& integers(const Json& record, const char* key) {
  const Json& list = member(record, key);
  const auto is_integer = [](const Json& value) { return value.is_number_integer(); };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_integer)) {
    throw unexpected(key, list, "a list of integers");
  }
  return list;
}

}  // namespace

ExponentHistogram histogram_of(const Json& record) {
  HistogramCounts counts;
  const Json& all = integers(record, "counts");
  const std::int64_t exponent = integer(record, "first_exponent");
  if (exponent < lowest_binade || exponent > highest_binade ||
      static_cast<std::int64_t>(all.size()) > highest_binade + 1 - exponent) {
    throw InvalidArgument("histogram record: binades outside -149 to 127");
  }
  const auto first = static_cast<std::size_t>(exponent - lowest_binade);
  for (const auto& [key, field] :
       {std::pair("counts", &BinadeCounts::all), std::pair("pow2", &BinadeCounts::at_power_of_two),
        std::pair("top", &BinadeCounts::rounds_to_overflow),
        std::pair("subnormal_carry", &BinadeCounts::rounds_to_normal)}) {
    const Json& list = integers(record, key);
    if (list.size() != all.size()) {
      throw InvalidArgument(
          fmt::format("histogram record: {} has {} binades, counts has {}", key, list.size(), all.size()));
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto of_binade = list[i].get<std::int64_t>(), whole = all[i].get<std::int64_t>();
      if (of_binade < 0 || of_binade > whole) {
        throw InvalidArgument(fmt::format("histogram record: {}: {} of {}", key, of_binade, whole));
      }
      counts.binades[first + i].*field = of_binade;
    }
  }
  counts.zeros = count(record, "zeros");
  counts.negative_zeros = count(record, "negative_zeros");
  counts.infinities = count(record, "infinities");
  counts.nans = count(record, "nans");
  if (const auto max_abs = record.find("max_abs"); max_abs != record.end()) {
    if (!max_abs->is_number()) throw unexpected("max_abs", *max_abs, "a number");
    counts.max_abs = max_abs->get<float>();
  }
  return ExponentHistogram(counts);
}

}  // namespace halfscope
