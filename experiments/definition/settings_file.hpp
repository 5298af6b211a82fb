// Settings from a file: the config.json of an earlier run, or TOML.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "experiments/definition/experiment.hpp"

namespace halfscope {

/// A config.json also names the experiment, arm and seed that it was written for, and so may TOML.
struct SettingsFile {
  Settings settings;
  std::optional<std::string> experiment;
  std::optional<std::string> arm;
  std::optional<std::int64_t> seed;
};

/// A file that opens with '{' is JSON; anything else is TOML without tables. Throws InvalidArgument.
[[nodiscard]] SettingsFile read_settings_file(const std::filesystem::path& path);

}  // namespace halfscope
