// Settles every config, then opens the data sets.
#include "experiments/runner/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include <halfscope/io/file.hpp>

#include "experiments/runner/settings_file.hpp"
#include "sim/data/datasets.hpp"
#include "sim/train/build.hpp"
#include "sim/train/run.hpp"

namespace halfscope {
namespace {

/// The request with what a config.json says filled in.
struct Request {
  const Experiment& experiment;
  std::vector<std::string> arms;
  std::vector<std::int64_t> seeds;
  RunSize size;
  Settings settings;  ///< what the user does
};

/// Sizes at which every experiment takes seconds.
const Settings smoke_settings{{"steps", "4"},           {"batch", "4"},           {"warmup_steps", "1"},
                              {"image_size", "40"},     {"vocabulary", "200"},    {"sequence_length", "8"},
                              {"embedding_size", "16"}, {"hidden_size", "16"},    {"evaluate_every", "4"},
                              {"observe_every", "2"},   {"checkpoint_every", "2"}};

/// Settings of an arm that a size changes.
Settings size_settings(const Experiment& experiment, const Arm& arm, RunSize size) {
  if (size == RunSize::small) return {};
  if (size == RunSize::smoke) return smoke_settings;
  return with(experiment.full_settings, arm.full_settings);
}

void require_same(const std::string& what, const std::string& asked, const std::string& stored) {
  if (asked == stored) return;
  throw InvalidArgument(fmt::format("--config is of {} {}, not of {}", what, stored, asked));
}

std::vector<std::int64_t> seeds_of(const RunRequest& request) {
  std::vector<std::int64_t> seeds(static_cast<std::size_t>(request.seeds > 0 ? request.seeds
                                                           : request.quick   ? 1
                                                                             : 3));
  for (std::size_t i = 0; i < seeds.size(); ++i) seeds[i] = static_cast<std::int64_t>(i);
  return seeds;
}

std::vector<std::string> arms_of(const RunRequest& request, const Experiment& experiment) {
  std::vector<std::string> arms;
  for (const std::string& name : request.arms) {
    const std::string& arm = find_in_table("arm of " + experiment.name, name, experiment.arms).name;
    if (std::find(arms.begin(), arms.end(), arm) == arms.end()) arms.push_back(arm);
  }
  if (arms.empty() && request.size == RunSize::full) arms = experiment.full_arms;
  if (arms.empty() && request.quick) arms = experiment.quick_arms;
  if (arms.empty()) {
    for (const Arm& arm : experiment.arms) arms.push_back(arm.name);
  }
  return arms;
}

Request settle(const Experiment& experiment, const RunRequest& request) {
  Request settled{experiment, arms_of(request, experiment), seeds_of(request), request.size, {}};
  if (!request.config.empty()) {
    SettingsFile file = read_settings_file(request.config);
    if (file.experiment) require_same("experiment", experiment.name, *file.experiment);
    if (file.arm) {
      for (const std::string& arm : request.arms) require_same("arm", arm, *file.arm);
      settled.arms = {*file.arm};
    }
    if (file.seed && request.seeds == 0) settled.seeds = {*file.seed};
    settled.settings = std::move(file.settings);
  }
  settled.settings = with(std::move(settled.settings), request.settings);
  return settled;
}

RunSettings make_settings(const Request& request, const Arm& arm, std::int64_t seed) {
  TrainConfig config;
  const Settings of_size = size_settings(request.experiment, arm, request.size);
  for (const Settings& settings : {request.experiment.settings, arm.settings, of_size}) {
    for (const auto& [key, value] : settings) set_field(config, key, value);
  }
  const std::string fixed = get_field(config, request.experiment.varied);
  for (const auto& [key, value] : request.settings) {
    if (key == "seed") throw InvalidArgument("seed: choose the number of seeds with --seeds");
    set_field(config, key, value);
  }
  const std::string& varied = request.experiment.varied;
  if (get_field(config, varied) != fixed && get_field(parsed(config).config, varied) != fixed) {
    throw InvalidArgument(fmt::format("{} is what the arms of {} differ in; choose them with --arms", varied,
                                      request.experiment.name));
  }
  config.seed = seed;
  return parsed(config);
}

std::vector<PlannedRun> settled_runs(const Request& request, const std::filesystem::path& out) {
  std::vector<PlannedRun> runs;
  for (const std::int64_t seed : request.seeds) {
    for (const std::string& name : request.arms) {
      const Arm& arm = find_in_table("arm of " + request.experiment.name, name, request.experiment.arms);
      runs.push_back({.settings = make_settings(request, arm, seed),
                      .folder = RunFolder(out, {request.experiment.name, name, seed}),
                      .dataset = nullptr});
    }
  }
  return runs;
}

void check_folder(const PlannedRun& run, const RunRequest& request) {
  if (!run.folder.exists()) return;
  if (!request.resume) {
    throw InvalidArgument(
        fmt::format("{} holds a run already; add --resume to keep or continue it, or give another --out",
                    printable(run.folder.path())));
  }
  run.folder.check_same(run.settings);
}

/// Gives each run its data set; an arm whose runs do not fit it is refused by the first of them.
void open_datasets(std::vector<PlannedRun>& runs) {
  std::map<std::pair<std::string, DatasetSpec>, std::shared_ptr<const Dataset>> opened;
  std::set<std::string> checked;
  for (PlannedRun& run : runs) {
    if (run.folder.is_done()) continue;
    const TrainConfig& config = run.settings.config;
    const DatasetSpec spec = dataset_spec(config);
    auto& dataset = opened[{config.dataset, spec}];
    if (!dataset) dataset = open_dataset(config.dataset, spec);
    if (checked.insert(run.folder.identity().arm).second) check_training(run.settings, *dataset);
    run.dataset = dataset;
  }
}

}  // namespace

std::vector<PlannedRun> plan_runs(const Experiment& experiment, const RunRequest& request) {
  std::vector<PlannedRun> runs = settled_runs(settle(experiment, request), request.out);
  for (const PlannedRun& run : runs) check_folder(run, request);
  open_datasets(runs);
  return runs;
}

}  // namespace halfscope
