// Plan, training and summaries of experiments.
#include "experiments/run/run_experiments.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <thread>

#include <halfscope/core/isa.hpp>
#include <halfscope/core/parallel.hpp>
#include <halfscope/core/stderr_text.hpp>
#include <halfscope/io/file.hpp>

#include "experiments/definition/experiment_file.hpp"
#include "experiments/results/run_records.hpp"
#include "experiments/results/summary_json.hpp"
#include "experiments/results/sweep_runs.hpp"
#include "experiments/run/look_alikes.hpp"
#include "experiments/run/more_seeds.hpp"
#include "experiments/run/run_queue.hpp"
#include "experiments/run/stop_signals.hpp"
#include "sim/train/lint.hpp"
#include "sim/train/processes.hpp"

namespace halfscope {
namespace {

/// Fused products in FP32 need an instruction for it, which processors have since 2013.
bool lacks_fma(const std::vector<PlannedRun>& runs) {
  const auto is_slow = [](const PlannedRun& run) {
    const AccumulateModel& products = run.settings.policy.products;
    return run.settings.device == Device::cpu && products.order == AccumulateOrder::fused &&
           products.format == fp32;
  };
  return active_isa() == Isa::baseline && std::ranges::any_of(runs, is_slow);
}

/// Notes on constants that the formats of an arm do not hold; seeds do not differ in that.
void print_findings(const std::vector<PlannedRun>& runs) {
  const bool several = are_of_several_experiments(runs);
  for (const PlannedRun& run : runs) {
    if (run.settings.config.seed != runs.front().settings.config.seed) continue;
    const RunIdentity& identity = run.folder.identity();
    const std::string arm = several ? fmt::format("{} {}", identity.experiment, identity.arm) : identity.arm;
    for (const Finding& finding : lint(run.settings))
      print_stderr(fmt::format("note: {}: {}\n", arm, to_string(finding)));
  }
}

bool is_smoke(const RequestedExperiment& requested) {
  return requested.request.size == RunSize::smoke;
}

void print_notes(const std::vector<RequestedExperiment>& requested, const std::vector<PlannedRun>& runs) {
  if (std::ranges::any_of(requested, is_smoke))
    print_stderr(fmt::format("note: --size smoke: a few steps at tiny sizes, so the results mean nothing\n"));
  if (lacks_fma(runs)) {
    print_stderr(
        fmt::format("note: the instruction set in use has no fused multiply-add, so products in FP32 are "
                    "slow; --set order=fp32_sequential is some twenty times as fast\n"));
  }
  note_look_alikes(runs);
  print_findings(runs);
}

/// Runs at a time: no more than there are to train.
int jobs_of(const Concurrency& concurrency, const std::vector<PlannedRun>& runs) {
  const auto waiting =
      std::count_if(runs.begin(), runs.end(), [](const PlannedRun& run) { return !run.is_done(); });
  return static_cast<int>(std::clamp<std::ptrdiff_t>(waiting, 1, concurrency.jobs));
}

int threads_of(const Concurrency& concurrency, int jobs) {
  if (concurrency.threads > 0) return concurrency.threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / jobs / local_process_count());
}

/// The processes of an mpirun train one run together.
void check_jobs(const Concurrency& concurrency) {
  if (concurrency.jobs == 1 || process_count() == 1) return;
  throw InvalidArgument(fmt::format("--jobs {} and {} processes of mpirun; leave one of them out",
                                    concurrency.jobs, process_count()));
}

/// The runs that have a result.
std::vector<std::filesystem::path> finished_runs(const Experiment& experiment,
                                                 const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> finished;
  for (const Arm& arm : experiment.arms) {
    for (auto& [seed, run] : run_folders(folder / arm.name))
      if (std::filesystem::exists(run / "summary.json")) finished.push_back(std::move(run));
  }
  return finished;
}

/// Leaves a file alone that has the text already, so that results which nobody may write can be shown again.
void write_if_changed(const std::filesystem::path& path, const std::string& text) {
  if (std::filesystem::is_regular_file(path) && read_file(path) == text) return;
  write_file(path, text);
}

/// Writes summary.json of the runs that are done, if any is. Another process may have finished runs
/// meanwhile, and have written before this one: whoever writes last looks once more.
ExperimentSummary write_summary(const Experiment& experiment, const std::filesystem::path& folder,
                                Summarise summarise_results) {
  while (true) {
    const auto finished = finished_runs(experiment, folder);
    ExperimentSummary summary = summarise_results(experiment, folder);
    if (!summary.arms.empty())
      write_if_changed(folder / "summary.json", to_text(to_json(experiment, summary)));
    if (finished_runs(experiment, folder) == finished) return summary;
  }
}

SweepRuns seeds_by_arm(const std::vector<PlannedRun>& runs) {
  SweepRuns seeds;
  for (const PlannedRun& run : runs) seeds[run.folder.identity().arm].insert(run.folder.identity().seed);
  return seeds;
}

/// Makes the experiment's folder, with the files that later requests and other shares read.
void make_folder(const RequestedExperiment& requested) {
  const auto folder = requested.folder();
  create_folder(folder);
  if (!requested.request.shard.is_whole())
    add_to_sweep(folder, seeds_by_arm(settled_runs(requested.experiment, requested.request)));
  if (requested.with_earlier_arms)
    write_if_changed(folder / definition_file, to_toml(*requested.with_earlier_arms));
}

/// After a signal that came behind the last run: no table is printed.
void end_if_stopped(const RunsOutcome& outcome) {
  const int signal = StopSignals::received();
  if (signal == 0) return;
  StoppedBySignal stop{signal, outcome.failures};
  stop.lines.push_back(
      fmt::format("stopped by {}: all runs are over; the same command with --resume prints the table",
                  signal_name(signal)));
  throw stop;
}

std::vector<std::string> train(const std::vector<PlannedRun>& runs, const Concurrency& concurrency) {
  const int jobs = jobs_of(concurrency, runs);
  set_thread_count(threads_of(concurrency, jobs));
  return train_runs(runs, static_cast<std::size_t>(jobs));
}

/// Trains what is requested, and further seeds where claims ask for them. Returns a line for each run that
/// failed.
std::vector<std::string> train_all(const std::vector<RequestedExperiment>& requested,
                                   const Concurrency& concurrency) {
  const std::vector<PlannedRun> runs = plan_runs(requested);
  StopSignals::begin_work();
  for (const RequestedExperiment& one : requested) make_folder(one);
  print_notes(requested, runs);
  std::vector<std::string> failures = train(runs, concurrency);
  std::vector<RequestedExperiment> further = with_more_seeds(requested);
  while (!further.empty() && failures.empty()) {
    failures = train(plan_runs(further), concurrency);
    further = with_more_seeds(further);
  }
  return failures;
}

}  // namespace

RunsOutcome run_experiments(const std::vector<RequestedExperiment>& requested, const Concurrency& concurrency,
                            Summarise summarise_results) {
  check_jobs(concurrency);
  RunsOutcome outcome{.summaries = {}, .failures = train_all(requested, concurrency)};
  for (const RequestedExperiment& one : requested) {
    end_if_stopped(outcome);
    ExperimentSummary& summary = outcome.summaries.emplace_back();
    try {
      summary = write_summary(one.shown(), one.folder(), summarise_results);
    } catch (const std::exception& error) {
      if (requested.size() == 1 && outcome.failures.empty()) throw;
      outcome.failures.emplace_back(error.what());  // beside the runs that failed and the other summaries
    }
  }
  end_if_stopped(outcome);
  return outcome;
}

}  // namespace halfscope
