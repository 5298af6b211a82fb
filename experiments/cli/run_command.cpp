// halfscope run: trains the arms of experiments and prints their tables.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
#include <optional>

#include "experiments/analyses/analyses.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/exit_status.hpp"
#include "experiments/cli/experiment_source.hpp"
#include "experiments/definition/seeds.hpp"
#include "experiments/definition/settings.hpp"
#include "experiments/results/report_text.hpp"
#include "experiments/run/look_alikes.hpp"
#include "experiments/run/run_experiments.hpp"
#include "experiments/run/run_matrix.hpp"
#include "experiments/run/shard.hpp"
#include "experiments/run/stop_signals.hpp"
#include "experiments/table/text_width.hpp"

namespace halfscope {
namespace {

enum class Action : std::uint8_t { train, list };

struct RunOptions {
  RunRequest request;
  Concurrency concurrency;
  std::vector<std::string> experiments, assignments, own_arms;
  std::string device, data, seed_list, size = "small";
  std::string ranks, all_reduce, predivide;
  std::int64_t max_seeds = 20;
  Action action = Action::train;
  bool until_decided = false;
  bool json = false;
};

Settings settings_of(const RunOptions& options) {
  Settings settings;
  if (!options.device.empty()) settings.emplace_back("device", options.device);
  if (!options.data.empty()) settings.emplace_back("data", options.data);
  if (!options.ranks.empty()) settings.emplace_back("ranks", options.ranks);
  if (!options.all_reduce.empty()) settings.emplace_back("all_reduce", options.all_reduce);
  if (!options.predivide.empty()) settings.emplace_back("predivide", options.predivide);
  return with(std::move(settings), parse_assignments(options.assignments));
}

/// Arms that are given with --arm run beside the ones that --arms names.
void choose_arms(RunRequest& request, const Experiment& experiment, std::size_t own) {
  if (request.arms.empty() || own == 0) return;
  for (std::size_t i = experiment.arms.size() - own; i < experiment.arms.size(); ++i)
    request.arms.push_back(experiment.arms[i].name);
}

/// The request, for each of its experiments. Throws InvalidArgument where two have one name.
std::vector<RequestedExperiment> requested_experiments(const RunOptions& options) {
  std::vector<RequestedExperiment> requested;
  for (const std::string& name : options.experiments) {
    RequestedExperiment one{with_arms(find_experiment(name), options.own_arms), options.request};
    choose_arms(one.request, one.experiment, options.own_arms.size());
    for (const RequestedExperiment& other : requested) {
      if (other.experiment.name != one.experiment.name) continue;
      throw InvalidArgument(fmt::format("experiment {} is named twice; name it once", one.experiment.name));
    }
    requested.push_back(std::move(one));
  }
  return requested;
}

/// Each request's share of its runs; none is trained.
std::vector<PlannedRun> listed_runs(const std::vector<RequestedExperiment>& requested) {
  std::vector<PlannedRun> runs;
  for (const RequestedExperiment& one : requested) {
    for (PlannedRun& run : share_of(settled_runs(one.experiment, one.request), one.request.shard))
      runs.push_back(std::move(run));
  }
  return runs;
}

void list_runs(const std::vector<RequestedExperiment>& requested, const RunOptions& options) {
  const std::vector<PlannedRun> runs = listed_runs(requested);
  note_look_alikes(runs);
  const Json matrix = run_matrix(runs);
  std::cout << (options.json ? to_text(matrix) : to_table(matrix));
}

RunsOutcome train(std::vector<RequestedExperiment>& requested, const Concurrency& concurrency) {
  for (RequestedExperiment& one : requested)
    one.with_earlier_arms = with_earlier_arms(one.experiment, one.folder());
  return run_experiments(requested, concurrency, analyse);
}

void print_tables(const std::vector<RequestedExperiment>& requested, const RunsOutcome& outcome) {
  std::string tables;
  for (std::size_t i = 0; i < requested.size(); ++i) {
    if (outcome.summaries[i].arms.empty()) continue;
    if (!tables.empty()) tables += "\n\n";
    tables += to_table(requested[i].shown(), outcome.summaries[i], {output_width()});
  }
  std::cout << tables << std::flush;
  for (const std::string& failure : outcome.failures) print_error(failure);
  if (!outcome.failures.empty()) throw Exit{failed_run};
}

/// Throws InvalidArgument where seeds cannot be added.
std::int64_t most_seeds_of(const RunOptions& options) {
  if (!options.request.shard.is_whole())
    throw InvalidArgument("--until-decided looks at all runs: leave out --shard");
  if (!options.request.config.empty())
    throw InvalidArgument("--until-decided judges an experiment's own settings: leave out --config");
  if (options.request.seeds == 1)
    throw InvalidArgument("--until-decided needs an interval: give --seeds 2 or more");
  if (options.request.seeds > options.max_seeds)
    throw InvalidArgument(
        fmt::format("--seeds {} is more than --max-seeds {}", options.request.seeds, options.max_seeds));
  return options.max_seeds;
}

void run(RunOptions& options) {
  std::optional<StopSignals> signals(std::in_place);
  RunRequest& request = options.request;
  request.settings = settings_of(options);
  request.size = parse_enum<RunSize>("size", options.size);
  if (options.until_decided) request.most_seeds = most_seeds_of(options);
  if (!options.seed_list.empty()) request.seed_list = parse_seed_list(options.seed_list);
  std::vector<RequestedExperiment> requested = requested_experiments(options);
  if (options.action == Action::list) return list_runs(requested, options);
  const RunsOutcome outcome = train(requested, options.concurrency);
  signals.reset();  // whoever reads the table may never do so
  print_tables(requested, outcome);
}

/// Seeds that are added do not go with a choice of them.
void add_until_decided(CLI::App& command, const std::shared_ptr<RunOptions>& options,
                       const std::vector<CLI::Option*>& choices) {
  CLI::Option* until_decided = command.add_flag(
      "--until-decided", options->until_decided,
      "double the seeds of arms that the claim leaves undecided, up to --max-seeds; see the guide on claims");
  for (CLI::Option* choice : choices) until_decided->excludes(choice);
  command.add_option("--max-seeds", options->max_seeds, "with --until-decided")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str()
      ->needs(until_decided);
}

void add_choice_of_runs(CLI::App& command, const std::shared_ptr<RunOptions>& options) {
  RunRequest& request = options->request;
  command.add_option("EXPERIMENT", options->experiments, "names, or files that end in .toml")->required();
  command.add_option("--arms", request.arms, "A,B: only these arms")->delimiter(',')->allow_extra_args(false);
  command
      .add_option("--arm", options->own_arms,
                  "NAME:KEY=VALUE,...: one more arm; like=ARM starts from another's settings; repeatable")
      ->allow_extra_args(false);
  CLI::Option* seeds =
      command.add_option("--seeds", request.seeds, "how many seeds: 3 by default, 1 with --quick")
          ->check(CLI::Range(1, 1000));
  CLI::Option* list_of_seeds =
      command.add_option("--seed-list", options->seed_list, "A,B: these seeds")->excludes(seeds);
  CLI::Option* quick =
      command.add_flag("--quick", request.quick, "one seed, and of some experiments fewer arms");
  add_until_decided(command, options, {list_of_seeds, quick});
  command
      .add_option("--size", options->size,
                  "small; full: the paper's millions of positions; smoke: seconds, to see that it runs")
      ->capture_default_str();
  command.add_option_function<std::string>(
      "--shard", [options](const std::string& shard) { options->request.shard = parse_shard(shard); },
      "I/N: every N-th run of the list, from the I-th on; for one process of several");
  CLI::Option* list = command.add_flag_callback(
      "--list-runs", [options] { options->action = Action::list; }, "print the runs and train none");
  command.add_flag("--json", options->json, "with --list-runs: as JSON")->needs(list);
}

void add_data_parallelism(CLI::App& command, const std::shared_ptr<RunOptions>& options) {
  command.add_option("--ranks", options->ranks,
                     "N: data-parallel training on N ranks, each with its part of every batch");
  command.add_option(
      "--all-reduce", options->all_reduce,
      "ORDER[/WIRE] in which the ranks' gradients are added, see 'halfscope list all-reduces'");
  command.add_option("--predivide", options->predivide,
                     "a rule of 'halfscope list divisions', or the factor of the division before the sum");
}

}  // namespace

void add_run_command(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  RunRequest& request = options->request;
  CLI::App* command = app.add_subcommand("run", "run experiments; see 'halfscope list experiments'");
  add_choice_of_runs(*command, options);
  command->add_option("--device", options->device, "cpu (the default) or cuda");
  command->add_option("--out", request.out, "where results go")
      ->capture_default_str()
      ->check([](const std::string& path) { return path.empty() ? "give a folder" : ""; });
  command->add_flag("--resume", request.resume,
                    "continue runs that are not done from their checkpoints; finished ones are kept anyway");
  command
      ->add_option("--set", options->assignments,
                   "KEY=VALUE: change a setting, see 'halfscope list settings'; repeatable")
      ->allow_extra_args(false);
  command->add_option("--config", request.config, "settings from a file: a run's config.json, or TOML");
  command->add_option("--data", options->data, "the data set's folder");
  add_data_parallelism(*command, options);
  command
      ->add_option("--jobs", options->concurrency.jobs,
                   "runs at a time, 1 by default; results do not depend on it")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option(
          "--threads", options->concurrency.threads,
          "threads of each run, by default the cores divided by --jobs; results do not depend on them")
      ->check(CLI::Range(1, 1024));
  command->callback([options] { run(*options); });
}

}  // namespace halfscope
