// Renames keys of settings, and those inside of values.
#include "sim/train/recorded_keys.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include <halfscope/core/error.hpp>

namespace halfscope {
namespace {

constexpr std::string_view holds_a_setting = "second_execution";  // its value is KEY=VALUE

std::string_view renamed(std::string_view key, std::string_view RecordedKey::*from,
                         std::string_view RecordedKey::*to) {
  const auto* const line = std::ranges::find(recorded_keys, key, from);
  return line == recorded_keys.end() ? key : (*line).*to;
}

using Rename = std::string_view (*)(std::string_view);

/// "KEY=VALUE" with the other key.
std::string with_key(const std::string& text, Rename rename) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return text;
  return fmt::format("{}{}", rename(std::string_view(text).substr(0, equals)), text.substr(equals));
}

Json with_keys(const Json& object, Rename rename) {
  if (!object.is_object()) return object;
  Json other = Json::object();
  for (const auto& [key, value] : object.items()) {
    Json& place = other[std::string(rename(std::string_view(key)))];
    place = key == holds_a_setting && value.is_string() ? Json(with_key(value.get<std::string>(), rename))
                                                        : value;
  }
  return other;
}

}  // namespace

std::string_view recorded_key(std::string_view setting) {
  return renamed(setting, &RecordedKey::setting, &RecordedKey::recorded);
}

std::string_view setting_of(std::string_view recorded) {
  return renamed(recorded, &RecordedKey::recorded, &RecordedKey::setting);
}

Json recorded(const Json& settings) {
  return with_keys(settings, recorded_key);
}

Json settings_of(const Json& recorded) {
  return with_keys(recorded, setting_of);
}

void refuse_recorded_key(std::string_view key) {
  const std::string_view setting = setting_of(key);
  if (setting != key) throw InvalidArgument(fmt::format("no setting {} since 0.1; give {}", key, setting));
}

}  // namespace halfscope
