// Reads and checks the summaries and configurations of runs.
#include "experiments/runner/run_records.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>

#include <halfscope/io/file.hpp>

#include "experiments/runner/seeds.hpp"
#include "sim/train/renamed.hpp"
#include "sim/train/run_folder.hpp"

namespace halfscope {
namespace {

namespace fs = std::filesystem;

enum class Presence : std::uint8_t { required, optional };

struct Member {
  std::string_view key;
  Presence presence;
  std::string_view expected;
  bool (*fits)(const Json& value);
};

bool is_text_list(const Json& value) {
  return value.is_array() && std::ranges::all_of(value, [](const Json& item) { return item.is_string(); });
}

bool is_object(const Json& value) {
  return value.is_object();
}

bool is_number_or_null(const Json& value) {
  return value.is_number() || value.is_null();
}

constexpr std::array run_members{
    Member{"seed", Presence::required, "a whole number", is_integer},
    Member{"diverged", Presence::required, "true or false",
           [](const Json& value) { return value.is_boolean(); }},
    Member{"metric", Presence::required, "a number or null", is_number_or_null},
    Member{"train_loss", Presence::required, "a number or null", is_number_or_null},
    Member{"overflows", Presence::optional, "a list of texts", is_text_list},
    Member{"memory", Presence::optional, "an object", is_object},
    Member{"gradients", Presence::optional, "an object", is_object},
    Member{"all_reduce", Presence::optional, "an object", is_object}};

constexpr std::array gradient_members{Member{"nonzero", Presence::required, "a whole number", is_integer},
                                      Member{"flushed", Presence::required, "a whole number", is_integer},
                                      Member{"subnormal", Presence::required, "a whole number", is_integer},
                                      Member{"overflow", Presence::required, "a whole number", is_integer}};

constexpr std::array memory_members{
    Member{"peak_step_bytes", Presence::required, "a whole number", is_integer}};

constexpr std::array all_reduce_members{
    Member{"elements", Presence::required, "a whole number", is_integer},
    Member{"adds", Presence::required, "a whole number", is_integer},
    Member{"stagnated", Presence::required, "a whole number", is_integer},
    Member{"addends_flushed", Presence::required, "a whole number", is_integer},
    Member{"addends_overflowed", Presence::required, "a whole number", is_integer},
    Member{"means_flushed", Presence::required, "a whole number", is_integer},
    Member{"means_overflowed", Presence::required, "a whole number", is_integer},
    Member{"steps", Presence::required, "a whole number", is_integer},
    Member{"stagnated_steps", Presence::required, "a whole number", is_integer}};

constexpr std::array diverged_members{
    Member{"diverged_step", Presence::required, "a whole number", is_integer}};

template <std::size_t size>
void check_members(const Json& json, const std::array<Member, size>& members, const fs::path& path) {
  for (const Member& member : members) {
    const auto found = json.find(member.key);
    if (found == json.end() && member.presence == Presence::optional) continue;
    if (found == json.end())
      throw InvalidArgument(fmt::format("{}: it lacks the key '{}'", printable(path), member.key));
    if (!member.fits(*found))
      throw InvalidArgument(fmt::format("{}: {} is {}; expected {}", printable(path), member.key,
                                        to_line(*found), member.expected));
  }
}

Json read_summary(const fs::path& path) {
  Json summary = read_json(path);
  check_format_version(summary, path);
  check_members(summary, run_members, path);
  if (summary["diverged"].get<bool>()) check_members(summary, diverged_members, path);
  if (summary.contains("memory")) check_members(summary["memory"], memory_members, path);
  if (summary.contains("gradients")) check_members(summary["gradients"], gradient_members, path);
  if (summary.contains("all_reduce")) check_members(summary["all_reduce"], all_reduce_members, path);
  return summary;
}

/// Null where there is none: a run is known by its summary.
Json read_config(const fs::path& path) {
  if (!fs::exists(path)) return {};
  const Json config = read_json(path);
  check_format_version(config, path);
  return with_defaults(with_current_names(config));
}

/// k of "seed<k>".
std::optional<std::int64_t> seed_of(const std::string& folder) {
  constexpr std::string_view prefix = "seed";
  if (!folder.starts_with(prefix)) return std::nullopt;
  try {
    return parse_seed(std::string_view(folder).substr(prefix.size()));
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

}  // namespace

std::string run_status(const fs::path& run) {
  if (!fs::exists(run / "status")) return "no status";
  const std::string text = read_file(run / "status");
  return text.substr(0, text.find('\n'));
}

std::vector<std::pair<std::int64_t, fs::path>> run_folders(const fs::path& arm) {
  std::vector<std::pair<std::int64_t, fs::path>> folders;
  if (!fs::is_directory(arm)) return folders;
  for (const auto& entry : fs::directory_iterator(arm)) {
    const std::optional<std::int64_t> seed = seed_of(entry.path().filename().string());
    if (seed && entry.is_directory()) folders.emplace_back(*seed, entry.path());
  }
  std::ranges::sort(folders);
  return folders;
}

ArmRuns read_runs(const fs::path& folder, const std::string& arm) {
  ArmRuns runs;
  for (const auto& [seed, run] : run_folders(folder / arm)) {
    const fs::path path = run / "summary.json";
    if (!fs::exists(path)) {
      runs.unfinished.push_back({arm, seed, run_status(run)});
      continue;
    }
    Json summary = read_summary(path);
    if (summary["seed"] != seed)
      throw InvalidArgument(fmt::format("{}: it is of seed {}; a run's folder is called by its seed",
                                        printable(path), to_line(summary["seed"])));
    runs.finished.push_back({seed, std::move(summary), read_config(run / "config.json")});
  }
  return runs;
}

}  // namespace halfscope
