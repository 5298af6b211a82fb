// Reads packed runs and their histograms.
#include "experiments/results/packed_runs.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

#include <halfscope/core/error.hpp>
#include <halfscope/io/file.hpp>

namespace halfscope {
namespace {

namespace fs = std::filesystem;

constexpr const char* runs_file = "runs.jsonl";
constexpr const char* histograms_file = "histograms.jsonl.gz";

const Json& member(const Json& record, const char* key) {
  const auto found = record.find(key);
  if (found == record.end()) throw InvalidArgument(fmt::format("it lacks the key '{}'", key));
  return *found;
}

/// `shared` and then the run's own settings.
Json whole_config(Json shared, const Json& own) {
  for (const auto& [key, value] : own.items()) shared[key] = value;
  return shared;
}

PackedRun packed_run(const Json& record, const Json& shared) {
  PackedRun packed{{.seed = member(record, "seed").get<std::int64_t>(),
                    .summary = member(record, "summary"),
                    .config = {}},
                   {}};
  check_run_summary(packed.run.summary, "summary");
  packed.run.config = current_config(whole_config(shared, member(record, "config")), "config");
  if (record.contains("first_step")) {
    packed.first_step = record["first_step"];
    if (!packed.first_step.is_null()) check_step_counters(packed.first_step);
  }
  return packed;
}

void add_run(PackedRuns& runs, const Json& record, const Json& shared) {
  const auto arm = member(record, "arm").get<std::string>();
  PackedRun packed = packed_run(record, shared);
  std::vector<PackedRun>& of_arm = runs[arm];
  if (!of_arm.empty() && of_arm.back().run.seed >= packed.run.seed)
    throw InvalidArgument(fmt::format("{} seed {}: the seeds of an arm ascend", arm, packed.run.seed));
  of_arm.push_back(std::move(packed));
}

}  // namespace

bool has_packed_runs(const fs::path& folder) {
  return fs::exists(folder / runs_file);
}

PackedRuns read_packed_runs(const fs::path& folder) {
  PackedRuns runs;
  std::optional<Json> shared;
  const fs::path path = folder / runs_file;
  const std::string text = read_file(path);
  // Unlike a file that a run still writes: its last line would be left out without a word.
  if (!text.ends_with('\n'))
    throw InvalidArgument(printable(path) + ": it ends within a line; record the runs again");
  std::istringstream lines(text);
  read_records_of(lines, path, [&](const Json& record) {
    if (shared) {
      add_run(runs, record, *shared);
    } else {
      shared = member(record, "config");
    }
    return Reading::continues;
  });
  return runs;
}

void each_packed_histogram(const fs::path& folder, const std::string& arm, std::int64_t seed,
                           const std::function<Reading(const Json& record)>& take) {
  const fs::path path = folder / histograms_file;
  if (!fs::exists(path)) return;
  std::istringstream text(read_gzip_file(path));
  read_records_of(text, path, [&](const Json& record) {
    const bool is_of_run = member(record, "arm") == arm && member(record, "seed") == seed;
    return is_of_run ? take(record) : Reading::continues;
  });
}

}  // namespace halfscope
