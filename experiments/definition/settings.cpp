// Takes settings apart, and joins them.
#include "experiments/definition/settings.hpp"

#include <fmt/format.h>

#include <halfscope/core/error.hpp>

#include "sim/train/entry_tables.hpp"

namespace halfscope {

Settings parse_assignments(const std::vector<std::string>& assignments, std::string_view option) {
  Settings settings;
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InvalidArgument(fmt::format("{} {}: give KEY=VALUE", option, assignment));
    }
    settings.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
  }
  return settings;
}

Settings with(Settings base, const Settings& changes) {
  for (const auto& changed : changes)
    for (const EntryTable& table : entry_tables())
      if (changed.first == table.kind)
        std::erase_if(base,
                      [&](const auto& setting) { return table.is_foreign(setting.first, changed.second); });
  base.insert(base.end(), changes.begin(), changes.end());
  return base;
}

void change(TrainConfig& config, const Settings& changes) {
  for (const auto& changed : changes)
    for (const EntryTable& table : entry_tables())
      if (changed.first == table.kind)
        std::erase_if(config.*table.values,
                      [&](const auto& option) { return table.is_foreign(option.first, changed.second); });
  for (const auto& [key, value] : changes) set_field(config, key, value);
}

}  // namespace halfscope
