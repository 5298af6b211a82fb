// Members of a histogram's record as JSON text, and out of a JSON value.
#include <halfscope/io/json/histogram_json.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <halfscope/format/quantizer.hpp>
#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/stats/what_if.hpp>

namespace halfscope {
namespace {

constexpr std::string_view record_kind = "histogram record";

constexpr std::array per_binade{std::pair{"counts", &BinadeCounts::all},
                                std::pair{"pow2", &BinadeCounts::at_power_of_two},
                                std::pair{"top", &BinadeCounts::rounds_to_overflow},
                                std::pair{"subnormal_carry", &BinadeCounts::rounds_to_normal}};
constexpr std::array beside_binades{std::pair{"zeros", &HistogramCounts::zeros},
                                    std::pair{"negative_zeros", &HistogramCounts::negative_zeros},
                                    std::pair{"infinities", &HistogramCounts::infinities},
                                    std::pair{"nans", &HistogramCounts::nans}};

void append(std::string& text, std::int64_t value) {
  const fmt::format_int digits(value);
  text.append(digits.data(), digits.size());
}

const Json& member(const Json& record, const char* key) {
  const auto found = record.is_object() ? record.find(key) : record.end();
  if (found == record.end()) refuse(record_kind, fmt::format("it lacks '{}'", key));
  return *found;
}

[[noreturn]] void refuse_member(const char* key, const Json& found, std::string_view expected) {
  refuse(record_kind, fmt::format("{} = {}; expected {}", key, to_line(found), expected));
}

std::int64_t integer(const Json& record, const char* key) {
  const Json& found = member(record, key);
  if (!is_integer(found)) refuse_member(key, found, "an integer");
  return found.get<std::int64_t>();
}

std::vector<std::int64_t> integers(const Json& record, const char* key) {
  const Json& found = member(record, key);
  if (!found.is_array() || !std::ranges::all_of(found, is_integer))
    refuse_member(key, found, "a list of integers");
  return found.get<std::vector<std::int64_t>>();
}

/// Reads one list into the counters of `binades`. The first list has all elements of each binade.
void read_list(const Json& record, std::pair<const char*, std::int64_t BinadeCounts::*> counter,
               std::span<BinadeCounts> binades) {
  const auto [key, field] = counter;
  const std::vector<std::int64_t> values = integers(record, key);
  if (values.size() != binades.size()) {
    refuse(record_kind, fmt::format("{} has {} binades, counts has {}", key, values.size(), binades.size()));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    binades[i].*field = values[i];
    if (values[i] < 0 || values[i] > binades[i].all)
      refuse(record_kind, fmt::format("{}: {} of {}", key, values[i], binades[i].all));
  }
}

/// Sums of the counts must stay integers of 64 bits.
void check_total(const HistogramCounts& counts) {
  std::int64_t total = counts.zeros;
  bool overflows = __builtin_add_overflow(total, counts.infinities, &total);
  overflows |= __builtin_add_overflow(total, counts.nans, &total);
  for (const BinadeCounts& binade : counts.binades)
    overflows |= __builtin_add_overflow(total, binade.all, &total);
  if (overflows) refuse(record_kind, "more elements than 64 bits can count");
}

/// The binades of `counts` that the record's lists count.
std::span<BinadeCounts> binades_of(const Json& record, HistogramCounts& counts) {
  const Json& list = member(record, "counts");
  if (!list.is_array()) refuse_member("counts", list, "a list of integers");
  const std::size_t size = list.size();
  const std::int64_t first = integer(record, "first_exponent");
  if (first < lowest_binade || first > highest_binade + 1 - static_cast<std::int64_t>(size))
    refuse(record_kind, "binades outside -149 to 127");
  return std::span(counts.binades).subspan(static_cast<std::size_t>(first - lowest_binade), size);
}

FloatFormat format_of(const Json& record) {
  const auto found = record.find("format");
  if (found == record.end()) return fp16;
  if (!found->is_string()) refuse_member("format", *found, "the name of a format");
  return parse_format(found->get<std::string>());
}

}  // namespace

std::string histogram_members(const ExponentHistogram& histogram) {
  const auto [first, binades] = filled_binades(histogram);
  std::string text = "\"first_exponent\":";
  append(text, first);
  for (const auto& [key, field] : per_binade) {
    text.append(",\"").append(key).append("\":");
    for (char separator = '['; const BinadeCounts& binade : binades) {
      text += std::exchange(separator, ',');
      append(text, binade.*field);
    }
    text += ']';
  }
  for (const auto& [key, field] : beside_binades) {
    text.append(",\"").append(key).append("\":");
    append(text, histogram.counts().*field);
  }
  return text;
}

ExponentHistogram histogram_of(const Json& record) {
  HistogramCounts counts;
  const std::span<BinadeCounts> binades = binades_of(record, counts);
  for (const auto& counter : per_binade) read_list(record, counter, binades);
  for (const auto& [key, field] : beside_binades) {
    counts.*field = integer(record, key);
    if (counts.*field < 0) refuse(record_kind, fmt::format("{} = {} is negative", key, counts.*field));
  }
  check_total(counts);
  if (const auto max_abs = record.find("max_abs"); max_abs != record.end()) {
    if (!max_abs->is_number()) refuse_member("max_abs", *max_abs, "a number");
    counts.max_abs = max_abs->get<float>();
  }
  return ExponentHistogram(counts, format_of(record));
}

}  // namespace halfscope
