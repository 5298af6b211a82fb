// The folder of one run: config, environment, records, checkpoint, summary and status.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/io/safetensors/safetensors.hpp>

#include "sim/train/records.hpp"
#include "sim/train/run_settings.hpp"

namespace halfscope {

/// Goes up when a file's meaning changes; readers refuse any other.
inline constexpr int results_format_version = 1;

/// Which run of which experiment.
struct RunIdentity {
  std::string experiment;
  std::string arm;
  std::int64_t seed = 0;
};

/// Throws InvalidArgument where `json`, read from `path`, has another format version than this program
/// writes.
void check_format_version(const Json& json, const std::filesystem::path& path);

class RunFolder {
 public:
  /// `root`/<experiment>/<arm>/seed<k>; nothing is made yet.
  RunFolder(const std::filesystem::path& root, RunIdentity identity);

  [[nodiscard]] const RunIdentity& identity() const { return identity_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] bool exists() const { return std::filesystem::exists(path_ / "config.json"); }
  [[nodiscard]] bool is_done() const;

  /// Makes the folder and writes config, environment and the status RUNNING.
  void begin(const RunSettings& settings) const;
  /// What `begin` writes as config.json.
  [[nodiscard]] Json config_json(const RunSettings& settings) const;
  /// Throws InvalidArgument unless the folder's config is this one: a resumed run must be the same run.
  void check_same(const RunSettings& settings) const;

  /// Records and checkpoint of the same step. The checkpoint is written last and holds the records' lengths,
  /// so that a run killed in between resumes from the older one.
  void save(const RecordText& records, SafetensorsFile checkpoint) const;
  struct Saved {
    SafetensorsFile checkpoint;
    RecordText records;
  };
  /// What `save` wrote, with later records cut off; nothing where no checkpoint was reached.
  [[nodiscard]] std::optional<Saved> load() const;

  /// Writes the summary and the status DONE.
  void finish(const Json& summary) const;
  /// Writes the status FAILED with the reason, if the disk still takes it.
  void fail(const std::string& reason) const noexcept;

 private:
  RunIdentity identity_;
  std::filesystem::path path_;
};

}  // namespace halfscope
