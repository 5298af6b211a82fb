// Reads and checks the summaries and configurations of runs.
#include "experiments/results/run_records.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include <halfscope/io/file.hpp>

#include "experiments/definition/seeds.hpp"
#include "experiments/results/records_file.hpp"

namespace halfscope {
namespace {

namespace fs = std::filesystem;

Json read_summary(const fs::path& path) {
  Json summary = read_json(path);
  check_run_summary(summary, printable(path));
  return summary;
}

/// Null where there is none: a run is known by its summary.
Json read_config(const fs::path& path) {
  return fs::exists(path) ? current_config(read_json(path), printable(path)) : Json();
}

/// The runs below an arm's folder.
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

/// The run of `seed`; null where there is none.
const PackedRun* find_run(const PackedRuns& packed, const std::string& arm, std::int64_t seed) {
  const auto runs = packed.find(arm);
  if (runs == packed.end()) return nullptr;
  const auto found =
      std::ranges::find_if(runs->second, [&](const PackedRun& run) { return run.run.seed == seed; });
  return found == runs->second.end() ? nullptr : &*found;
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

RunRecords::RunRecords(fs::path folder) : folder_(std::move(folder)) {
  if (has_packed_runs(folder_)) packed_ = read_packed_runs(folder_);
}

ArmRuns RunRecords::of_arm(const std::string& arm) const {
  if (!packed_) return read_runs(folder_, arm);
  ArmRuns runs;
  if (const auto found = packed_->find(arm); found != packed_->end())
    for (const PackedRun& run : found->second) runs.finished.push_back(run.run);
  return runs;
}

std::vector<std::int64_t> RunRecords::seeds(const std::string& arm) const {
  std::vector<std::int64_t> seeds;
  if (!packed_) {
    for (const auto& [seed, run] : run_folders(folder_ / arm)) seeds.push_back(seed);
  } else if (const auto found = packed_->find(arm); found != packed_->end()) {
    for (const PackedRun& run : found->second) seeds.push_back(run.run.seed);
  }
  return seeds;
}

Json RunRecords::first_counters(const std::string& arm, std::int64_t seed) const {
  if (packed_) {
    const PackedRun* run = find_run(*packed_, arm, seed);
    return run == nullptr ? Json() : run->first_step;
  }
  Json first;
  read_records(run_folder(arm, seed) / "metrics.jsonl", [&](const Json& record) {
    const Json& step = record.at("step");
    (void)step.get<std::int64_t>();
    if (!record.contains("tensors")) return Reading::ends;
    check_step_counters(record);
    first = {{"step", step}, {"tensors", record["tensors"]}};
    return Reading::ends;
  });
  return first;
}

void RunRecords::each_first_histogram(const std::string& arm, std::int64_t seed,
                                      const std::function<void(const Json& record)>& take) const {
  std::optional<std::int64_t> first;
  each_histogram(arm, seed, [&](const Json& record) {
    const auto step = record.at("step").get<std::int64_t>();
    if (!first) first = step;
    if (step == *first) take(record);
    return step == *first ? Reading::continues : Reading::ends;
  });
}

void RunRecords::each_histogram(const std::string& arm, std::int64_t seed,
                                const std::function<Reading(const Json& record)>& take) const {
  if (packed_) {
    each_packed_histogram(folder_, arm, seed, take);
  } else {
    read_records(run_folder(arm, seed) / "histograms.jsonl", take);
  }
}

fs::path RunRecords::run_folder(const std::string& arm, std::int64_t seed) const {
  return folder_ / arm / fmt::format("seed{}", seed);
}

}  // namespace halfscope
