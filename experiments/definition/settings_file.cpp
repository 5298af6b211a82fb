// Reads settings from JSON and TOML.
#include "experiments/definition/settings_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <halfscope/io/file.hpp>
#include <halfscope/io/json/json_lines.hpp>

#include "experiments/definition/seeds.hpp"
#include "experiments/definition/toml_file.hpp"
#include "sim/train/recorded_keys.hpp"
#include "sim/train/run_folder.hpp"

namespace halfscope {
namespace {

/// Puts one of the file's values to its place.
void put(SettingsFile& file, const std::string& key, const std::string& value) {
  if (key == "experiment") {
    file.experiment = value;
  } else if (key == "arm") {
    file.arm = value;
  } else if (key == "seed") {
    file.seed = parse_seed(value);
  } else {
    file.settings.emplace_back(key, value);
  }
}

SettingsFile from_json(const std::string& text, const std::filesystem::path& path) {
  Json json = parse_json(text, printable(path));
  check_format_version(json, path);
  if (json.contains("arm")) json = settings_of(without_foreign_options(json));  // a run's
  SettingsFile file;
  for (const auto& [key, value] : json.items()) {
    if (key == "format_version") continue;
    if (!value.is_string() && !value.is_number())
      throw InvalidArgument(fmt::format("{}: '{}' is neither a text nor a number", printable(path), key));
    try {
      put(file, key, value.is_string() ? value.get<std::string>() : value.dump());
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{}: {}", printable(path), error.what()));
    }
  }
  return file;
}

SettingsFile from_toml(const std::string& text, const std::filesystem::path& path) {
  SettingsFile file;
  const TomlFile toml(text, path);
  for (const TomlEntry& entry : in_file_order(toml.root())) {
    toml.at(entry, [&] { put(file, std::string(entry.key), toml.setting(entry)); });
  }
  return file;
}

}  // namespace

SettingsFile read_settings_file(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{' ? from_json(text, path) : from_toml(text, path);
}

}  // namespace halfscope
