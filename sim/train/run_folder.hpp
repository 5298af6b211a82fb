// The folder of one run: config, environment, records, checkpoint, summary and status.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include <halfscope/core/error.hpp>
#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/io/safetensors/safetensors.hpp>

#include "sim/train/record_log.hpp"
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

/// Whoever writes to it holds its FolderLock.
class RunFolder {
 public:
  /// `root`/<experiment>/<arm>/seed<k>; nothing is made yet.
  RunFolder(const std::filesystem::path& root, RunIdentity identity);

  [[nodiscard]] const RunIdentity& identity() const { return identity_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Whether a run has begun in it.
  [[nodiscard]] bool exists() const;
  /// Whether its status is DONE and the summary is there.
  [[nodiscard]] bool is_done() const;
  /// The checkpoint's place in a run's folder.
  static constexpr const char* checkpoint_name = "checkpoint/state.safetensors";
  [[nodiscard]] std::filesystem::path checkpoint_path() const { return path_ / checkpoint_name; }
  /// That of the arm `arm` of the same experiment with the same seed.
  [[nodiscard]] RunFolder of_arm(const std::string& arm) const;

  /// Makes the folder and writes config, environment and the status RUNNING. A folder that another build or
  /// machine began keeps that environment; ours is added to its "continued", with the step. `data_summary` is
  /// the data set's.
  void begin(const RunSettings& settings, std::int64_t steps_done,
             const std::string& data_summary = {}) const;
  /// The config.json that `begin` writes.
  [[nodiscard]] Json config_json(const RunSettings& settings) const;
  /// Throws InvalidArgument unless the folder's config is this one: a resumed run must be the same run.
  void check_same(const RunSettings& settings) const;

  /// Brings the records to the disk, then writes the checkpoint, which holds their extent: a run killed in
  /// between resumes from the older checkpoint.
  void save(RecordLog& records, SafetensorsFile checkpoint) const;
  /// Images (count, height, width, channels) that the run's model has made.
  void save_samples(const Array& samples) const;
  /// Hands the last checkpoint to `restore`, and leaves the records that belong to it: `take` receives the
  /// lines of metrics.jsonl. Does nothing with the trainer where there is no checkpoint. Throws
  /// InvalidArgument, with the file, where a file is not what the run wrote.
  void load(RecordLog& records, const LineFunction& take,
            const std::function<void(const SafetensorsFile&)>& restore) const;

  /// Throws InvalidArgument, with the file and the way on, where the checkpoint or a record is not what a run
  /// that is over wrote. Nothing is changed. A folder passes without a checkpoint, or with one that notes no
  /// extents, as the first revisions wrote it.
  void check_files() const;

  /// Writes the summary and the status DONE.
  void finish(const Json& summary) const;
  /// Writes the status STOPPED with the step of the checkpoint.
  void stop(std::int64_t steps_done) const;
  /// Writes the status FAILED with the reason, if the disk still takes it.
  void fail(const std::string& reason) const noexcept;

 private:
  /// `ours`, or what the folder has with it.
  [[nodiscard]] Json environment_json(Json ours, std::int64_t steps_done) const;
  /// Throws InvalidArgument with what `error` says and the way on.
  [[noreturn]] void refuse(const InvalidArgument& error) const;

  RunIdentity identity_;
  std::filesystem::path path_;
};

}  // namespace halfscope
