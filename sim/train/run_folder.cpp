// Reads and writes the files of a run.
#include "sim/train/run_folder.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <halfscope/core/stderr_text.hpp>
#include <halfscope/io/file.hpp>

#include "sim/data/datasets.hpp"
#include "sim/train/checkpoint_file.hpp"
#include "sim/train/environment.hpp"
#include "sim/train/recorded_keys.hpp"

namespace halfscope {
namespace {

constexpr const char* config_file = "config.json";
constexpr const char* environment_file = "environment.json";
constexpr const char* summary_file = "summary.json";
constexpr const char* status_file = "status";

/// Whether two environments may compute or record differently; threads are no such difference.
bool is_same_build(Json first, Json second) {
  for (Json* environment : {&first, &second}) {
    for (const char* key : {"threads", "continued", "from_step"}) environment->erase(key);
  }
  return first == second;
}

/// Calls `use`; an InvalidArgument that it throws is thrown with `path` before it.
template <typename Use>
void with_path(const std::filesystem::path& path, Use&& use) {
  try {
    use();
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", printable(path), error.what()));
  }
}

/// The environment of those who trained last.
const Json& latest_of(const Json& environment) {
  const auto later = environment.find("continued");
  const bool continued = later != environment.end() && later->is_array() && !later->empty();
  return continued && later->back().is_object() ? later->back() : environment;
}

}  // namespace

void check_format_version(const Json& json, const std::filesystem::path& path) {
  const auto version = json.is_object() ? json.find("format_version") : json.end();
  if (!json.is_object() || version == json.end() || *version != results_format_version) {
    const std::string found = json.is_object() && version != json.end() ? version->dump() : "none";
    throw InvalidArgument(
        fmt::format("{}: results format {} found, this halfscope reads format {}; use the halfscope that "
                    "wrote it, or run again into another folder",
                    printable(path), found, results_format_version));
  }
}

RunFolder::RunFolder(const std::filesystem::path& root, RunIdentity identity)
    : identity_(std::move(identity)),
      path_(root / identity_.experiment / identity_.arm / fmt::format("seed{}", identity_.seed)) {}

RunFolder RunFolder::of_arm(const std::string& arm) const {
  const std::filesystem::path root = path_.parent_path().parent_path().parent_path();
  return {root, {identity_.experiment, arm, identity_.seed}};
}

bool RunFolder::exists() const {
  return std::filesystem::exists(path_ / config_file) || std::filesystem::exists(checkpoint_path());
}

bool RunFolder::is_done() const {
  return std::filesystem::exists(path_ / status_file) && read_file(path_ / status_file).starts_with("DONE") &&
         std::filesystem::exists(path_ / summary_file);
}

Json RunFolder::config_json(const RunSettings& settings) const {
  Json json{{"format_version", results_format_version},
            {"experiment", identity_.experiment},
            {"arm", identity_.arm}};
  json.update(to_json(settings.config));
  return json;
}

Json RunFolder::environment_json(Json ours, std::int64_t steps_done) const {
  if (steps_done == 0 || !std::filesystem::exists(path_ / environment_file)) return ours;
  Json first = read_json(path_ / environment_file);
  if (!first.is_object() || is_same_build(latest_of(first), ours)) return first;
  print_stderr(
      fmt::format("note: {}: continued after step {} by another build or machine than before; "
                  "environment.json lists them\n",
                  printable(path_), steps_done));
  Json entry{{"from_step", steps_done + 1}};
  entry.update(ours);
  if (!first.contains("continued") || !first["continued"].is_array()) first["continued"] = Json::array();
  first["continued"].push_back(std::move(entry));
  return first;
}

void RunFolder::begin(const RunSettings& settings, std::int64_t steps_done,
                      const std::string& data_summary) const {
  Json ours = environment();
  const std::string maker = data_maker(settings.config.dataset, settings.config.data);
  if (!maker.empty()) ours["data_maker"] = maker;
  if (!data_summary.empty()) ours["data_summary"] = data_summary;
  create_folder(path_ / "checkpoint");
  remove_unfinished_files(path_);
  remove_unfinished_files(path_ / "checkpoint");
  write_file(path_ / environment_file, to_text(environment_json(std::move(ours), steps_done)));
  write_file(path_ / status_file, "RUNNING\n");
  write_file(path_ / config_file, to_text(config_json(settings)));
}

void RunFolder::check_same(const RunSettings& settings) const {
  const auto path = path_ / config_file;
  if (!std::filesystem::exists(path)) {
    throw InvalidArgument(
        fmt::format("{}: it is missing beside a checkpoint, whose settings nobody knows; put it back, or "
                    "remove the run's folder and start again",
                    printable(path)));
  }
  const Json file = read_json(path);
  check_format_version(file, path);
  const Json stored = settings_of(with_defaults(file)),
             wanted = settings_of(with_defaults(config_json(settings)));
  for (const auto& [key, value] : wanted.items()) {
    const auto found = stored.find(key);
    if (found != stored.end() && *found == value) continue;
    throw InvalidArgument(
        fmt::format("{}: the run has {} = {}, now {} is asked for; give the run's own settings or another "
                    "--out",
                    printable(path), key, found == stored.end() ? "nothing" : found->dump(), value.dump()));
  }
}

void RunFolder::save(RecordLog& records, SafetensorsFile checkpoint) const {
  records.flush();
  records.describe(checkpoint);
  write_checkpoint(checkpoint_path(), std::move(checkpoint));
}

void RunFolder::save_samples(const Array& samples) const {
  SafetensorsFile file;
  file.tensors.push_back({"samples", samples.clone()});
  write_safetensors(path_ / "samples.safetensors", file);
}

void RunFolder::load(RecordLog& records, const LineFunction& take,
                     const std::function<void(const SafetensorsFile&)>& restore) const {
  const auto path = checkpoint_path();
  if (!std::filesystem::exists(path)) return records.restore(take);
  try {
    const SafetensorsFile checkpoint = read_checkpoint(path);
    with_path(path, [&] {
      restore(checkpoint);
      records.expect(checkpoint);
    });
    records.restore(take);
  } catch (const InvalidArgument& error) {
    refuse(error);
  }
}

void RunFolder::check_files() const {
  const auto path = checkpoint_path();
  if (!std::filesystem::exists(path)) return;
  try {
    RecordLog records(path_);
    const SafetensorsFile checkpoint = read_checkpoint(path);
    if (!records.is_described_in(checkpoint)) return;
    with_path(path, [&] { records.expect(checkpoint); });
    records.check();
  } catch (const InvalidArgument& error) {
    refuse(error);
  }
}

void RunFolder::refuse(const InvalidArgument& error) const {
  throw InvalidArgument(
      fmt::format("{}; remove the run's folder {} and start again", error.what(), printable(path_)));
}

void RunFolder::finish(const Json& summary) const {
  write_file(path_ / summary_file, to_text(summary));
  write_file(path_ / status_file, "DONE\n");
}

void RunFolder::stop(std::int64_t steps_done) const {
  write_file(path_ / status_file, fmt::format("STOPPED after step {}: terminated, resumable\n", steps_done));
}

void RunFolder::fail(const std::string& reason) const noexcept {
  try {
    if (std::filesystem::exists(path_)) write_file(path_ / status_file, "FAILED: " + reason + "\n");
  } catch (const std::exception&) {
    // The status then stays RUNNING; the reason itself is on its way to the user.
  }
}

}  // namespace halfscope
