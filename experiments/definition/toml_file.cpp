// Reads TOML; the one source that toml++ is compiled in.
#define TOML_IMPLEMENTATION
#include "experiments/definition/toml_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <tuple>

#include <halfscope/core/names.hpp>
#include <halfscope/io/file.hpp>

namespace halfscope {

std::vector<TomlEntry> in_file_order(const toml::table& table) {
  std::vector<TomlEntry> entries;
  for (const auto& [key, value] : table) entries.push_back({key.str(), key.source(), &value});
  std::ranges::sort(entries, {}, [](const TomlEntry& entry) {
    return std::tuple(entry.place.begin.line, entry.place.begin.column);
  });
  return entries;
}

std::string toml_quoted(std::string_view value) {
  std::ostringstream text;
  text << toml::value<std::string>(std::string(value));
  return text.str();
}

std::string toml_key(std::string_view key) {
  const auto is_bare = [](char c) {
    return (std::isalnum(static_cast<unsigned char>(c)) != 0) || c == '_' || c == '-';
  };
  return std::ranges::all_of(key, is_bare) ? std::string(key) : toml_quoted(key);
}

std::string toml_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + toml_quoted(text);
  return "[" + list + "]";
}

TomlFile::TomlFile(std::string_view text, std::filesystem::path path) : path_(std::move(path)) {
  try {
    root_ = toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail(error.source(), error.description());
  }
}

const toml::table& TomlFile::table(const TomlEntry& entry) const {
  if (const toml::table* table = entry.value->as_table()) return *table;
  fail(entry.value->source(), fmt::format("{}: give a table", entry.key));
}

std::string TomlFile::text(const TomlEntry& entry) const {
  if (const auto* text = entry.value->as_string()) return text->get();
  fail(entry.value->source(), fmt::format("{}: give a text in quotes", entry.key));
}

std::vector<std::string> TomlFile::texts(const TomlEntry& entry) const {
  const toml::array* values = entry.value->as_array();
  if (values == nullptr) fail(entry.value->source(), fmt::format("{}: give a list of texts", entry.key));
  std::vector<std::string> found;
  for (const TomlEntry& element : elements(entry)) found.push_back(text(element));
  return found;
}

std::vector<TomlEntry> TomlFile::elements(const TomlEntry& entry) const {
  const toml::array* values = entry.value->as_array();
  if (values == nullptr) fail(entry.value->source(), fmt::format("{}: give a list", entry.key));
  std::vector<TomlEntry> found;
  for (const toml::node& value : *values) found.push_back({entry.key, value.source(), &value});
  return found;
}

double TomlFile::number(const TomlEntry& entry) const {
  if (const auto* integer = entry.value->as_integer()) return static_cast<double>(integer->get());
  if (const auto* number = entry.value->as_floating_point()) return number->get();
  fail(entry.value->source(), fmt::format("{}: give a number", entry.key));
}

bool TomlFile::flag(const TomlEntry& entry) const {
  if (const auto* flag = entry.value->as_boolean()) return flag->get();
  fail(entry.value->source(), fmt::format("{}: give true or false", entry.key));
}

int TomlFile::whole_number(const TomlEntry& entry, int most) const {
  const auto* number = entry.value->as_integer();
  if (number != nullptr && number->get() >= 0 && number->get() <= most)
    return static_cast<int>(number->get());
  fail(entry.value->source(), fmt::format("{}: give a number from 0 to {}", entry.key, most));
}

std::string TomlFile::setting(const TomlEntry& entry) const {
  const toml::node& value = *entry.value;
  if (const auto* text = value.as_string()) return text->get();
  if (const auto* integer = value.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* number = value.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = value.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* parts = value.as_table(); parts != nullptr && parts->is_inline()) {
    std::vector<std::string> texts;
    for (const TomlEntry& part : in_file_order(*parts))
      texts.push_back(fmt::format("{}={}", part.key, setting(part)));
    return fmt::format("{}", fmt::join(texts, ", "));
  }
  fail(value.source(), fmt::format("{}: give a text or a number", entry.key));
}

void TomlFile::check_keys(const toml::table& table, std::span<const std::string_view> known) const {
  for (const TomlEntry& entry : in_file_order(table)) {
    if (std::ranges::find(known, entry.key) == known.end())
      fail(entry.place, unknown_name("key", entry.key, known));
  }
}

void TomlFile::fail(const toml::source_region& place, std::string_view text) const {
  throw InvalidArgument(
      fmt::format("{}line {}, column {}: {}", opening(), place.begin.line, place.begin.column, text));
}

bool TomlFile::has_place(std::string_view message) const {
  return message.starts_with(opening());
}

std::string TomlFile::opening() const {
  return printable(path_) + ": ";
}

}  // namespace halfscope
