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
#include "experiments/runner/present.hpp"
#include "experiments/runner/summarise.hpp"
#include "sim/train/renamed.hpp"

namespace halfscope {
namespace {

namespace fs = std::filesystem;

/// The current name of an experiment, and its earlier ones.
std::vector<std::string> names_of(const Experiment& experiment) {
  std::vector<std::string> names{experiment.name};
  for (const RenamedEntry& entry : renamed_table) {
    if (entry.kind == NameKind::experiment && entry.current == experiment.name)
      names.emplace_back(entry.earlier);
  }
  return names;
}

/// Folders DIR/<experiment> in or at `folder`, in the order of the experiment table.
std::vector<std::pair<const Experiment*, fs::path>> experiments_in(const fs::path& folder) {
  if (!fs::is_directory(folder)) throw InvalidArgument(printable(folder) + ": no such folder of results");
  std::vector<std::pair<const Experiment*, fs::path>> found;
  const fs::path absolute = fs::weakly_canonical(folder);
  for (const Experiment& experiment : experiment_table()) {
    for (const std::string& name : names_of(experiment)) {
      const fs::path path = absolute.filename() == name ? folder : folder / name;
      if (!fs::is_directory(path)) continue;
      if (name != experiment.name) note_renamed(name, experiment.name);
      found.emplace_back(&experiment, path);
    }
  }
  if (found.empty()) {
    throw InvalidArgument(printable(folder) +
                          ": no results of an experiment; give what 'halfscope run' had as --out, or a "
                          "folder of an experiment in it");
  }
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
      for (const auto& [experiment, path] : experiments_in(folder)) {
        const ExperimentSummary summary = summarise(*experiment, path);
        if (summary.arms.empty()) throw InvalidArgument(printable(path) + ": no run in it is done");
        text += options->json ? to_line(to_json(*experiment, summary)) + "\n"
                              : to_table(*experiment, summary) + "\n";
      }
    }
    std::cout << text;
  });
}

}  // namespace halfscope
