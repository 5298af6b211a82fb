// Settles every config, then opens the data sets.
#include "experiments/run/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include <halfscope/io/file.hpp>

#include "experiments/definition/arm_config.hpp"
#include "experiments/definition/seeds.hpp"
#include "experiments/definition/settings_file.hpp"
#include "experiments/results/run_records.hpp"
#include "experiments/run/shard.hpp"
#include "sim/data/datasets.hpp"
#include "sim/train/build.hpp"
#include "sim/train/run.hpp"
#include "sim/train/start_weights.hpp"

namespace halfscope {
namespace {

/// The request with what a config.json says filled in.
struct Request {
  const Experiment& experiment;
  std::vector<std::string> arms;
  std::vector<std::int64_t> seeds;
  RunSize size;
  Settings settings;                    ///< the user's settings
  std::optional<std::string> of_arm{};  ///< the arm that a config.json is of, if any
  Settings own_settings{};              ///< settings of that config.json alone
};

void require_same(const std::string& what, const std::string& asked, const std::string& stored) {
  if (asked == stored) return;
  throw InvalidArgument(fmt::format("--config is of {} {}, not of {}", what, stored, asked));
}

std::vector<std::string> arms_of(const RunRequest& request, const Experiment& experiment) {
  std::vector<std::string> arms;
  for (const std::string& name : request.arms) {
    const std::string& arm = experiment.arm(name).name;
    if (std::ranges::find(arms, arm) == arms.end()) arms.push_back(arm);
  }
  if (arms.empty() && request.size == RunSize::full) arms = experiment.full_arms;
  if (arms.empty() && request.quick) arms = experiment.quick_arms;
  if (arms.empty()) {
    for (const Arm& arm : experiment.arms) arms.push_back(arm.name);
  }
  return arms;
}

Request settle(const Experiment& experiment, const RunRequest& request) {
  Request settled{experiment, arms_of(request, experiment), requested_seeds(request), request.size, {}};
  if (!request.config.empty()) {
    SettingsFile file = read_settings_file(request.config);
    if (file.experiment) require_same("experiment", experiment.name, *file.experiment);
    if (file.arm) {
      for (const std::string& arm : request.arms) require_same("arm", arm, *file.arm);
      settled.arms = {*file.arm};
    }
    if (file.seed) {
      if (request.seeds > 0 || !request.seed_list.empty())
        throw InvalidArgument(fmt::format("{} is of seed {}; leave out --seeds and --seed-list",
                                          printable(request.config), *file.seed));
      settled.seeds = {*file.seed};
    }
    (file.arm ? settled.own_settings : settled.settings) = std::move(file.settings);
    settled.of_arm = file.arm;
  }
  settled.settings = with(std::move(settled.settings), request.settings);
  return settled;
}

/// Throws InvalidArgument where `config` changes a key that the arms of `experiment` differ in. A value may
/// be another word for the same one.
void require_own(const Experiment& experiment, const TrainConfig& own, const TrainConfig& config) {
  for (const std::string& key : experiment.varied) {
    if (get_field(config, key) == get_field(own, key) ||
        get_field(parsed(config).config, key) == get_field(parsed(own).config, key))
      continue;
    throw InvalidArgument(fmt::format(
        "{} is what the arms of {} differ in; choose them with --arms, or add one with --arm NAME:{}={}", key,
        experiment.name, key, get_field(config, key)));
  }
}

RunSettings make_settings(const Request& request, const Arm& arm, std::int64_t seed) {
  const TrainConfig own = arm_config(request.experiment, arm, request.size);
  TrainConfig config = own;
  const Settings settings =
      arm.name == request.of_arm ? with(request.own_settings, request.settings) : request.settings;
  if (std::ranges::find(settings, "seed", &Settings::value_type::first) != settings.end())
    throw InvalidArgument("seed: choose seeds with --seeds or --seed-list");
  change(config, settings);
  config.seed = seed;
  try {
    require_own(request.experiment, own, config);
    return parsed(config);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("arm {}: {}", arm.name, error.what()));
  }
}

void check_folder(const PlannedRun& run, const RunRequest& request) {
  if (!run.folder.exists()) return;
  run.folder.check_same(run.settings);
  if (request.resume || run.folder.is_done()) return;
  throw InvalidArgument(fmt::format(
      "{} holds a run already that is not done ({}); add --resume to continue it, or give another "
      "--out",
      printable(run.folder.path()), run_status(run.folder.path())));
}

/// Throws, with the arm's name, where its training cannot be right.
void check_arm(const PlannedRun& run, const Dataset& dataset) {
  const auto named = [&](const char* why) {
    return fmt::format("arm {}: {}", run.folder.identity().arm, why);
  };
  try {
    check_training(run.settings, dataset);
  } catch (const RuntimeFailure& error) {
    throw RuntimeFailure(named(error.what()));
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(named(error.what()));
  }
}

/// Gives each run its data set; an arm whose runs do not fit it is refused by the first of them.
void open_datasets(std::vector<PlannedRun>& runs) {
  std::map<std::pair<std::string, DatasetSpec>, std::shared_ptr<const Dataset>> opened;
  std::set<std::pair<std::string, std::string>> checked;
  for (PlannedRun& run : runs) {
    if (run.folder.is_done()) continue;
    const TrainConfig& config = run.settings.config;
    const DatasetSpec spec = dataset_spec(config);
    auto& dataset = opened[{config.dataset, spec}];
    if (!dataset) dataset = open_dataset(config.dataset, spec);
    const RunIdentity& identity = run.folder.identity();
    if (checked.emplace(identity.experiment, identity.arm).second) check_arm(run, *dataset);
    run.dataset = dataset;
  }
}

/// The arms that are asked for and those that they start from or learn from, each behind its sources.
class ArmsInOrder {
 public:
  explicit ArmsInOrder(const Request& request) : request_(request) {
    for (const std::string& arm : request.arms) (void)add(arm);
    std::ranges::stable_sort(arms_, {}, [&](const std::string& arm) { return depths_.at(arm); });
  }

  [[nodiscard]] std::vector<std::string> names() && { return std::move(arms_); }

 private:
  /// Returns how many runs before it the run of `arm` waits for, one behind the other.
  std::size_t add(const std::string& arm) {
    if (const auto known = depths_.find(arm); known != depths_.end()) return known->second;
    if (!open_.insert(arm).second)
      throw InvalidArgument(fmt::format("arm {}: its start_from or teacher leads back to it", arm));
    std::size_t depth = 0;
    for (const std::string& source :
         source_arms(make_settings(request_, request_.experiment.arm(arm), 0).config))
      depth = std::max(depth, 1 + add(request_.experiment.arm(source).name));
    depths_[arm] = depth;
    arms_.push_back(arm);
    return depth;
  }

  const Request& request_;
  std::set<std::string> open_;  ///< whose sources are being added
  std::map<std::string, std::size_t> depths_;
  std::vector<std::string> arms_;
};

}  // namespace

std::vector<std::int64_t> requested_seeds(const RunRequest& request) {
  if (!request.seed_list.empty()) return request.seed_list;
  constexpr std::int64_t quick = 1, usual = 3;
  return first_seeds(request.seeds > 0 ? request.seeds : request.quick ? quick : usual);
}

std::vector<PlannedRun> settled_runs(const Experiment& experiment, const RunRequest& request) {
  Request settled = settle(experiment, request);
  settled.arms = ArmsInOrder(settled).names();
  std::vector<PlannedRun> runs;
  for (const std::int64_t seed : settled.seeds) {
    for (const std::string& name : settled.arms) {
      runs.push_back({.settings = make_settings(settled, experiment.arm(name), seed),
                      .folder = RunFolder(request.out, {experiment.name, name, seed}),
                      .dataset = nullptr});
    }
  }
  // Sources of all seeds first, so that no job waits for one while another could train.
  std::stable_partition(runs.begin(), runs.end(),
                        [](const PlannedRun& run) { return source_arms(run.settings.config).empty(); });
  return runs;
}

std::vector<PlannedRun> plan_runs(const std::vector<RequestedExperiment>& requested) {
  std::vector<PlannedRun> runs;
  for (const RequestedExperiment& one : requested) {
    for (PlannedRun& run : runs_of_shard(settled_runs(one.experiment, one.request), one.request.shard)) {
      check_folder(run, one.request);
      runs.push_back(std::move(run));
    }
  }
  open_datasets(runs);
  return runs;
}

bool are_of_several_experiments(const std::vector<PlannedRun>& runs) {
  return std::ranges::any_of(runs, [&](const PlannedRun& run) {
    return run.folder.identity().experiment != runs.front().folder.identity().experiment;
  });
}

}  // namespace halfscope
