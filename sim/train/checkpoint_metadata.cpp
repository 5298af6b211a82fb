// Each number is checked against the range that a run can give it.
#include "sim/train/checkpoint_metadata.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include <halfscope/core/error.hpp>

namespace halfscope {
namespace {

std::optional<double> parse_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

const std::string& entry(const SafetensorsFile& checkpoint, const std::string& key) {
  const auto found = checkpoint.metadata.find(key);
  if (found == checkpoint.metadata.end()) throw InvalidArgument(fmt::format("its metadata lacks '{}'", key));
  return found->second;
}

[[noreturn]] void refuse(const std::string& key, const std::string& text, NumberRange range,
                         std::string_view kind) {
  throw InvalidArgument(fmt::format("its metadata has {} = '{:.40}'; expected a {} from {:g} to {:g}", key,
                                    text, kind, range.low, range.high));
}

/// A NaN is within no range.
bool is_within(NumberRange range, double value) {
  return value >= range.low && value <= range.high;
}

}  // namespace

double metadata_number(const SafetensorsFile& checkpoint, const std::string& key, NumberRange range) {
  const std::string& text = entry(checkpoint, key);
  const std::optional<double> value = parse_number(text);
  if (!value || !is_within(range, *value)) refuse(key, text, range, "number");
  return *value;
}

std::int64_t metadata_count(const SafetensorsFile& checkpoint, const std::string& key, NumberRange range) {
  const std::string& text = entry(checkpoint, key);
  const std::optional<double> value = parse_number(text);
  if (!value || !is_within(range, *value) || *value != std::trunc(*value))
    refuse(key, text, range, "whole number");
  return static_cast<std::int64_t>(*value);
}

}  // namespace halfscope
