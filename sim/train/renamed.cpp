// Translation of earlier names, and the notes about them.
#include "sim/train/renamed.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <mutex>
#include <set>
#include <vector>

#include <halfscope/core/name_list.hpp>
#include <halfscope/core/stderr_text.hpp>

namespace halfscope {

std::string_view current_name(NameKind kind, std::string_view name) {
  const auto* entry = std::find_if(
      renamed_table.begin(), renamed_table.end(),
      [&](const RenamedEntry& renamed) { return renamed.kind == kind && renamed.earlier == name; });
  if (entry == renamed_table.end()) return name;
  note_renamed(entry->earlier, entry->current);
  return entry->current;
}

void note_renamed(std::string_view earlier, std::string_view current) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> noted;
  const std::lock_guard lock(mutex);
  if (!noted.emplace(earlier).second) return;
  print_stderr(
      fmt::format("note: {} is called {} now; the earlier name is read for one release\n", earlier, current));
}

std::string current_value(std::string_view key, std::string_view value) {
  if (key == "accumulate") return std::string(current_name(NameKind::accumulate, value));
  if (key != "trackers") return std::string(value);
  std::vector<std::string_view> names = names_in(value, std::array{all_names});
  for (std::string_view& name : names) name = current_name(NameKind::tracker, name);
  return fmt::format("{}", fmt::join(names, ","));
}

Json with_current_names(const Json& config) {
  Json renamed = Json::object();
  for (const auto& [key, value] : config.items()) {
    const std::string name(current_name(NameKind::setting, key));
    renamed[name] = value.is_string() ? Json(current_value(name, value.get<std::string>())) : value;
  }
  return renamed;
}

}  // namespace halfscope
