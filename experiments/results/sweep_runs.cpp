// Reads and writes sweep.json.
#include "experiments/results/sweep_runs.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <halfscope/io/file.hpp>
#include <halfscope/io/json/json_lines.hpp>

#include "sim/train/run_folder.hpp"

namespace halfscope {
namespace {

constexpr const char* sweep_file = "sweep.json";

void add_listed(const Json& run, SweepRuns& runs) {
  if (!run.is_object() || !run.contains("arm") || !run["arm"].is_string() || !run.contains("seed") ||
      !is_integer(run["seed"]))
    throw InvalidArgument(fmt::format("{} is no run; expected an arm and a seed", to_line(run)));
  runs[run["arm"].get<std::string>()].insert(run["seed"].get<std::int64_t>());
}

}  // namespace

SweepRuns read_sweep(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / sweep_file;
  if (!std::filesystem::exists(path)) return {};
  const Json json = read_json(path);
  check_format_version(json, path);
  SweepRuns runs;
  try {
    if (!json.contains("runs") || !json["runs"].is_array()) throw InvalidArgument("it lacks the list 'runs'");
    for (const Json& run : json["runs"]) add_listed(run, runs);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", printable(path), error.what()));
  }
  return runs;
}

void add_to_sweep(const std::filesystem::path& folder, const SweepRuns& runs) {
  SweepRuns all = read_sweep(folder);
  for (const auto& [arm, seeds] : runs) all[arm].insert(seeds.begin(), seeds.end());
  Json list = Json::array();
  for (const auto& [arm, seeds] : all)
    for (const std::int64_t seed : seeds) list.push_back({{"arm", arm}, {"seed", seed}});
  write_file(folder / sweep_file, to_text({{"format_version", results_format_version}, {"runs", list}}));
}

}  // namespace halfscope
