// Reads and writes the files of a run.
#include "sim/train/run_folder.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>

#include <halfscope/io/file.hpp>

#include "sim/train/environment.hpp"
#include "sim/train/renamed.hpp"

namespace halfscope {
namespace {

constexpr const char* metrics_file = "metrics.jsonl";
constexpr const char* histograms_file = "histograms.jsonl";
constexpr const char* checkpoint_file = "checkpoint/state.safetensors";

/// The first bytes of `path`, as many as the checkpoint says it had.
std::string records_up_to(const std::filesystem::path& path, const SafetensorsFile& checkpoint,
                          const std::string& key) {
  std::string text = read_file(path);
  const auto entry = checkpoint.metadata.find(key);
  std::size_t length = 0;
  if (entry == checkpoint.metadata.end() ||
      std::from_chars(entry->second.data(), entry->second.data() + entry->second.size(), length).ec !=
          std::errc{} ||
      length > text.size()) {
    throw InvalidArgument(
        fmt::format("{}: it is shorter than its checkpoint says; remove the run's folder and start again",
                    printable(path)));
  }
  text.resize(length);
  return text;
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

bool RunFolder::is_done() const {
  return std::filesystem::exists(path_ / "status") && read_file(path_ / "status").starts_with("DONE");
}

Json RunFolder::config_json(const RunSettings& settings) const {
  Json json{{"format_version", results_format_version},
            {"experiment", identity_.experiment},
            {"arm", identity_.arm}};
  json.update(to_json(settings.config));
  return json;
}

void RunFolder::begin(const RunSettings& settings) const {
  create_folder(path_ / "checkpoint");
  remove_unfinished_files(path_);
  remove_unfinished_files(path_ / "checkpoint");
  write_file(path_ / "environment.json", to_text(environment()));
  write_file(path_ / "status", "RUNNING\n");
  write_file(path_ / "config.json", to_text(config_json(settings)));
}

void RunFolder::check_same(const RunSettings& settings) const {
  const Json file = read_json(path_ / "config.json");
  check_format_version(file, path_ / "config.json");
  const Json stored = with_current_names(file), wanted = config_json(settings);
  for (const auto& [key, value] : wanted.items()) {
    const auto found = stored.find(key);
    if (found != stored.end() && *found == value) continue;
    throw InvalidArgument(
        fmt::format("{}: the run has {} = {}, now {} is asked for; give the run's own settings or another "
                    "--out",
                    printable(path_ / "config.json"), key, found == stored.end() ? "nothing" : found->dump(),
                    value.dump()));
  }
}

void RunFolder::save(const RecordText& records, SafetensorsFile checkpoint) const {
  write_file(path_ / metrics_file, records.metrics);
  write_file(path_ / histograms_file, records.histograms);
  checkpoint.metadata["metrics_bytes"] = fmt::format("{}", records.metrics.size());
  checkpoint.metadata["histograms_bytes"] = fmt::format("{}", records.histograms.size());
  write_safetensors(path_ / checkpoint_file, checkpoint);
}

std::optional<RunFolder::Saved> RunFolder::load() const {
  if (!std::filesystem::exists(path_ / checkpoint_file)) return std::nullopt;
  Saved saved{read_safetensors(path_ / checkpoint_file), {}};
  saved.records = {records_up_to(path_ / metrics_file, saved.checkpoint, "metrics_bytes"),
                   records_up_to(path_ / histograms_file, saved.checkpoint, "histograms_bytes")};
  return saved;
}

void RunFolder::finish(const Json& summary) const {
  write_file(path_ / "summary.json", to_text(summary));
  write_file(path_ / "status", "DONE\n");
}

void RunFolder::fail(const std::string& reason) const noexcept {
  try {
    if (std::filesystem::exists(path_)) write_file(path_ / "status", "FAILED: " + reason + "\n");
  } catch (const std::exception&) {
    // The status then stays RUNNING; the reason itself is on its way to the user.
  }
}

}  // namespace halfscope
