// Numbers of settings: their parsing, and the message about one that is out of its range.
#include "sim/options/field_range.hpp"

#include <fmt/format.h>

#include <charconv>
#include <type_traits>

#include <halfscope/core/error.hpp>

namespace halfscope {
namespace {

template <typename Number>
Number parse(std::string_view key, std::string_view text, const FieldRange& range) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (whole && static_cast<double>(value) >= range.low && static_cast<double>(value) <= range.high)
    return value;
  throw InvalidArgument(fmt::format(
      "{} = '{}': give {} from {}", key, text, std::is_integral_v<Number> ? "an integer" : "a number",
      range.text != nullptr ? range.text : fmt::format("{:.4g} to {:.4g}", range.low, range.high)));
}

}  // namespace

double parse_number(std::string_view key, std::string_view text, const FieldRange& range) {
  return parse<double>(key, text, range);
}

std::int64_t parse_whole_number(std::string_view key, std::string_view text, const FieldRange& range) {
  return parse<std::int64_t>(key, text, range);
}

}  // namespace halfscope
