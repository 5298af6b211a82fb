// halfscope run: trains the arms of an experiment and prints their table.
#include <iostream>
#include <memory>

#include "experiments/ablations/experiments.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/exit_status.hpp"
#include "experiments/runner/present.hpp"
#include "experiments/runner/runner.hpp"
#include "experiments/runner/settings.hpp"
#include "sim/train/renamed.hpp"

namespace halfscope {
namespace {

struct Options {
  RunRequest request;
  std::vector<std::string> assignments;
  std::string experiment, device, data, size = "small";
};

Settings settings_of(const Options& options) {
  Settings settings;
  if (!options.device.empty()) settings.emplace_back("device", options.device);
  if (!options.data.empty()) settings.emplace_back("data", options.data);
  return with(std::move(settings), parse_assignments(options.assignments));
}

void run(Options& options) {
  options.request.settings = settings_of(options);
  options.request.size = parse_enum<RunSize>("size", current_name(NameKind::size, options.size));
  const Experiment& experiment =
      find_in_table("experiment", current_name(NameKind::experiment, options.experiment), experiment_table());
  const ExperimentOutcome outcome = run_experiment(experiment, options.request);
  if (!outcome.summary.arms.empty()) std::cout << to_table(experiment, outcome.summary) << std::flush;
  for (const std::string& failure : outcome.failures) print_error(failure);
  if (!outcome.failures.empty()) throw Exit{failed_run};
}

}  // namespace

void add_run_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  RunRequest& request = options->request;
  CLI::App* command = app.add_subcommand("run", "run an experiment; see 'halfscope list experiments'");
  command->add_option("EXPERIMENT", options->experiment, "its name")->required();
  command->add_option("--device", options->device, "cpu (the default) or cuda");
  command->add_option("--arms", request.arms, "A,B: only these arms")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--seeds", request.seeds, "how many seeds: 3 by default, 1 with --quick")
      ->check(CLI::Range(1, 1000));
  command->add_flag("--quick", request.quick, "one seed, and of some experiments fewer arms");
  command
      ->add_option("--size", options->size,
                   "small; full: the paper's millions of positions; smoke: seconds, to see that it runs")
      ->capture_default_str();
  command
      ->add_option_function<std::string>("--scale",
                                         [options](const std::string& size) {
                                           note_renamed("--scale", "--size");
                                           options->size = size;
                                         })
      ->group("");  // not in --help
  command->add_option("--out", request.out, "where results go")->capture_default_str();
  command->add_flag("--resume", request.resume,
                    "keep finished runs, continue the others from their checkpoints");
  command
      ->add_option("--set", options->assignments,
                   "KEY=VALUE: change a setting, see 'halfscope list settings'; repeatable")
      ->allow_extra_args(false);
  command->add_option("--config", request.config, "settings from a file: a run's config.json, or TOML");
  command->add_option("--data", options->data, "the data set's folder");
  command->add_option("--jobs", request.jobs, "runs at a time, 1 by default; results do not depend on it")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--threads", request.threads,
                   "of each run, by default the cores divided by --jobs; results do not depend on them")
      ->check(CLI::Range(1, 1024));
  command->callback([options] { run(*options); });
}

}  // namespace halfscope
