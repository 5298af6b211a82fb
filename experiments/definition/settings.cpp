// Takes settings apart, and joins them.
#include "experiments/definition/settings.hpp"

#include <fmt/format.h>

#include <halfscope/core/error.hpp>

#include "sim/train/entry_tables.hpp"

namespace halfscope {
namespace {

/// Drops from `options`, pairs of a key and a value, those that an entry of `table` which `changes` choose
/// does not take.
template <typename Options>
void drop_foreign(Options& options, const EntryTable& table, const Settings& changes) {
  for (const auto& changed : changes)
    if (changed.first == table.kind)
      std::erase_if(options,
                    [&](const auto& option) { return table.is_foreign(option.first, changed.second); });
}

}  // namespace

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
  for (const EntryTable& table : entry_tables()) drop_foreign(base, table, changes);
  base.insert(base.end(), changes.begin(), changes.end());
  return base;
}

void change(TrainConfig& config, const Settings& changes) {
  for (const EntryTable& table : entry_tables()) drop_foreign(config.*table.values, table, changes);
  for (const auto& [key, value] : changes) set_field(config, key, value);
}

}  // namespace halfscope
