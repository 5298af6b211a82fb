// Short runs on the small data set, for the tests of runs and of their files.
#pragma once

#include <halfscope/io/file.hpp>

#include <exception>
#include <filesystem>
#include <map>
#include <string>

#include "sim/train/run.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope {

inline const SmallDataset small_dataset;

inline TrainConfig small_config() {
  return {.steps = 30,
          .batch = 32,
          .learning_rate = 1e-3,
          .policy = "fp16_mixed",
          .loss_scale = "dynamic",
          .observe_every = 5,
          .evaluation = {.every = 10},
          .checkpoint_every = 7};
}

inline void ignore(const StepRecord& /*record*/) {}

/// Thrown to stop a run in the middle, as a kill would.
struct Killed : std::exception {};

/// For run_training: ends the run after step `stop`.
inline StepFunction killed_at(std::int64_t stop) {
  return [stop](const StepRecord& record) {
    if (record.step == stop) throw Killed();
  };
}

using Records = std::map<std::string, std::string>;

inline Records records_of(const RunFolder& folder) {
  return {{"metrics", read_file(folder.path() / "metrics.jsonl")},
          {"histograms", read_file(folder.path() / "histograms.jsonl")},
          {"checkpoint", read_file(folder.path() / "checkpoint/state.safetensors")}};
}

inline Records run_in(const std::filesystem::path& root, const TrainConfig& config) {
  const RunFolder folder(root, {"experiment", "arm", config.seed});
  run_training(parsed(config), small_dataset, folder, ignore);
  return records_of(folder);
}

inline constexpr const char* checkpoint_file = "checkpoint/state.safetensors";

/// A run of the small config in a folder of its own.
struct SmallRun {
  TemporaryFolder temporary;
  RunFolder folder{temporary.path(), {"experiment", "arm", 0}};

  [[nodiscard]] std::filesystem::path operator/(const char* file) const { return folder.path() / file; }

  RunEnd train(const StepFunction& after_step = ignore, const StopFunction& should_stop = {}) const {
    return run_training(parsed(small_config()), small_dataset, folder, after_step, should_stop);
  }
  void kill_at(std::int64_t step) const { CHECK_THROWS_AS(train(killed_at(step)), Killed); }
  [[nodiscard]] std::string status() const { return read_file(*this / "status"); }
};

}  // namespace halfscope
