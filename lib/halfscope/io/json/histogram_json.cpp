// Members of a histogram's record as JSON text, and out of a JSON value.
#include <halfscope/io/json/histogram_json.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <halfscope/core/error.hpp>
#include <halfscope/stats/histogram_record.hpp>

namespace halfscope {
namespace {

const Json& member(const Json& record, const char* key) {
  const auto found = record.is_object() ? record.find(key) : record.end();
  if (found == record.end()) throw InvalidArgument(fmt::format("histogram record: it lacks '{}'", key));
  return *found;
}

[[noreturn]] void refuse(const char* key, const Json& found, const char* expected) {
  throw InvalidArgument(fmt::format("histogram record: {} = {}; expected {}", key, to_line(found), expected));
}

/// Also one that is written as 3.0.
bool is_integer(const Json& value) {
  if (!value.is_number_float()) return value.is_number_integer();
  const auto number = value.get<double>();
  return std::fabs(number) < 0x1p53 && number == std::trunc(number);
}

std::int64_t integer(const Json& record, const char* key) {
  const Json& found = member(record, key);
  if (!is_integer(found)) refuse(key, found, "an integer");
  return found.get<std::int64_t>();
}

std::vector<std::int64_t> list(const Json& record, const char* key) {
  const Json& found = member(record, key);
  if (!found.is_array() || !std::ranges::all_of(found, is_integer)) refuse(key, found, "a list of integers");
  return found.get<std::vector<std::int64_t>>();
}

}  // namespace

std::string histogram_members(const ExponentHistogram& histogram) {
  std::string members;
  const auto add = [&](std::int64_t value) {
    const fmt::format_int digits(value);
    members.append(digits.data(), digits.size());
  };
  const auto open = [&](const char* key) {
    members.append(members.empty() ? "\"" : ",\"").append(key).append("\":");
  };
  const auto add_list = [&](const char* key, std::span<const std::int64_t> values) {
    open(key);
    for (char separator = '['; const std::int64_t value : values) {
      members += std::exchange(separator, ',');
      add(value);
    }
    members += ']';
  };
  const auto add_integer = [&](const char* key, std::int64_t value) {
    open(key);
    add(value);
  };
  write_record(histogram, {add_integer, add_list});
  return members;
}

ExponentHistogram histogram_of(const Json& record) {
  HistogramCounts counts = read_record({[&](const char* key) { return integer(record, key); },
                                        [&](const char* key) { return list(record, key); }});
  if (const auto max_abs = record.find("max_abs"); max_abs != record.end()) {
    if (!max_abs->is_number()) refuse("max_abs", *max_abs, "a number");
    counts.max_abs = max_abs->get<float>();
  }
  return ExponentHistogram(counts);
}

}  // namespace halfscope
