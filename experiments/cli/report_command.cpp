// halfscope report: the arms of finished experiments side by side.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include <halfscope/io/file.hpp>

#include "experiments/ablations/experiments.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/experiment_source.hpp"
#include "experiments/runner/present.hpp"
#include "experiments/runner/summarise.hpp"
#include "experiments/runner/summary_json.hpp"

namespace halfscope {
namespace {

namespace fs = std::filesystem;

struct Results {
  Experiment experiment;
  fs::path folder;
};

std::size_t place_in_table(const Results& results) {
  const auto& table = experiment_table();
  return static_cast<std::size_t>(std::ranges::find(table, results.experiment.name, &Experiment::name) -
                                  table.begin());
}

/// Results in `folder` or in the folders DIR/<experiment> of it: built-in experiments in the order of their
/// table, then others by name.
std::vector<Results> results_in(const fs::path& folder) {
  if (!fs::is_directory(folder)) throw InvalidArgument(printable(folder) + ": no such folder of results");
  if (std::optional<Experiment> experiment = experiment_of(folder)) return {{*std::move(experiment), folder}};
  std::vector<Results> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_directory()) continue;
    if (std::optional<Experiment> experiment = experiment_of(entry.path()))
      found.push_back({*std::move(experiment), entry.path()});
  }
  if (found.empty()) {
    throw InvalidArgument(printable(folder) +
                          ": no results of an experiment; give what 'halfscope run' had as --out, or a "
                          "folder of an experiment in it");
  }
  std::ranges::sort(found, {}, [](const Results& results) {
    return std::pair(place_in_table(results), results.folder.filename().string());
  });
  return found;
}

}  // namespace

void add_report_command(CLI::App& app) {
  struct Options {
    std::vector<std::string> folders;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("report", "the arms of finished experiments side by side");
  command->add_option("DIR", options->folders, "results, or an experiment's folder in them")->required();
  command->add_flag("--json", options->json, "one JSON object per experiment, a line each, on stdout");
  command->callback([options] {
    std::string text;
    for (const std::string& folder : options->folders) {
      for (const auto& [experiment, path] : results_in(folder)) {
        const ExperimentSummary summary = summarise(experiment, path);
        if (summary.arms.empty()) throw InvalidArgument(printable(path) + ": no run in it is done");
        text += options->json ? to_line(to_json(experiment, summary)) + "\n"
                              : to_table(experiment, summary) + "\n";
      }
    }
    std::cout << text;
  });
}

}  // namespace halfscope
