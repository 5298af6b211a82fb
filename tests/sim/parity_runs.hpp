// Runs a training on the CPU and on the device and compares what it leaves behind.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <halfscope/io/file.hpp>
#include <halfscope/io/json/json_lines.hpp>

#include "sim/train/run.hpp"
#include "tests/support/device_parity.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope {

using Records = std::map<std::string, std::string>;

/// Where a run computes.
struct RunPlace {
  std::string device = "cpu";
  std::string execution = "emulated";
};

inline Records records_on(const RunPlace& place, TrainConfig config, const Dataset& dataset) {
  const TemporaryFolder temporary;
  config.device = place.device;
  config.execution = place.execution;
  const RunFolder folder(temporary.path(), {"experiment", "arm", config.seed});
  run_training(parsed(config), dataset, folder, [](const StepRecord&) {});
  return {{"metrics", read_file(folder.path() / "metrics.jsonl")},
          {"histograms", read_file(folder.path() / "histograms.jsonl")},
          {"checkpoint", read_file(folder.path() / "checkpoint/state.safetensors")},
          {"memory", to_line(read_json(folder.path() / "summary.json").at("memory"))}};
}

/// The first line in which two texts differ, which names the step and holds the site.
inline std::string first_difference(const std::string& a, const std::string& b) {
  std::size_t line = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] != b[i]) {
      const std::size_t from = i < 60 ? 0 : i - 60;
      return "line " + std::to_string(line + 1) + ": ..." + a.substr(from, 120) + "... on the CPU, ..." +
             b.substr(from, 120) + "... on the device";
    }
    if (a[i] == '\n') ++line;
  }
  return a.size() == b.size() ? "" : "one text is longer than the other";
}

using Marks = std::vector<std::string>;

/// Members in the records of a watched run.
inline const Marks watched_run{R"("tensors":[{)", R"("updates":[{)", R"("fp32_reference":[{)",
                               R"("histogram":{)", R"("test_loss":)"};

/// Checks that the records are the same, and that `marks` are in them: that there was something to compare.
inline void check_parity(const TrainConfig& config, const Dataset& dataset, const Marks& marks = watched_run,
                         const std::string& execution = "emulated") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  Records here = records_on({}, config, dataset), there = records_on({"cuda", execution}, config, dataset);
  for (const std::string& mark : marks) {
    INFO(mark);
    CHECK(here["metrics"].find(mark) != std::string::npos);
  }
  for (const char* file : {"metrics", "histograms"}) {
    INFO(file << ": " << first_difference(here[file], there[file]));
    CHECK((here[file] == there[file]));
  }
  CHECK((here["checkpoint"] == there["checkpoint"]));
  CHECK(here["memory"] == there["memory"]);
}

/// Everything that looks at a step looks at every one.
inline TrainConfig watched(TrainConfig config) {
  config.steps = 5;
  config.batch = 6;
  config.learning_rate = 1e-3;
  config.loss_scale = "dynamic";
  config.record_gradients = "histogram";
  config.observe_roles = "all";
  config.observe_every = 1;
  config.fp32_reference_every = 2;
  config.evaluation.every = 3;
  config.checkpoint_every = 2;
  return config;
}

}  // namespace halfscope
