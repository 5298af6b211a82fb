// Reads settings from JSON and TOML.
#include "experiments/runner/settings_file.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <sstream>

#include <halfscope/io/file.hpp>
#include <halfscope/io/json/json_lines.hpp>

#include "sim/train/run_folder.hpp"

namespace halfscope {
namespace {

SettingsFile from_json(const std::string& text, const std::filesystem::path& path) {
  const Json json = parse_json(text, printable(path));
  check_format_version(json, path);
  SettingsFile file;
  for (const auto& [key, value] : json.items()) {
    if (key == "format_version") continue;
    if (key == "experiment") {
      file.experiment = value.get<std::string>();
    } else if (key == "arm") {
      file.arm = value.get<std::string>();
    } else if (key == "seed") {
      file.seed = value.get<std::int64_t>();
    } else if (value.is_string() || value.is_number()) {
      file.settings.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
    } else {
      throw InvalidArgument(fmt::format("{}: '{}' is neither a text nor a number", printable(path), key));
    }
  }
  return file;
}

SettingsFile from_toml(const std::string& text, const std::filesystem::path& path) {
  SettingsFile file;
  std::istringstream stream(text);
  for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(stream)) {
    if (!item.parents.empty() || item.inputs.size() != 1) {
      throw InvalidArgument(fmt::format("{}: '{}' should be KEY = VALUE, one value and no section",
                                        printable(path), item.fullname()));
    }
    file.settings.emplace_back(item.name, item.inputs.front());
  }
  return file;
}

}  // namespace

SettingsFile read_settings_file(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  try {
    return first != std::string::npos && text[first] == '{' ? from_json(text, path) : from_toml(text, path);
  } catch (const CLI::Error& error) {
    throw InvalidArgument(fmt::format("{}: {}", printable(path), error.what()));
  } catch (const nlohmann::json::exception& error) {
    throw InvalidArgument(fmt::format("{}: {}", printable(path), error.what()));
  }
}

}  // namespace halfscope
