// halfscope report: the arms of finished experiments side by side.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>

#include <halfscope/core/escape.hpp>
#include <halfscope/io/file.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/exit_status.hpp"
#include "experiments/cli/experiment_source.hpp"
#include "experiments/cli/experiment_table.hpp"
#include "experiments/results/arm_columns.hpp"
#include "experiments/results/arm_table.hpp"
#include "experiments/results/report_text.hpp"
#include "experiments/results/summarise.hpp"
#include "experiments/results/summary_json.hpp"

namespace halfscope {
namespace {

namespace fs = std::filesystem;

struct Results {
  Experiment experiment;
  fs::path folder;
};

int place_in_table(const Results& results) {
  const Experiment* known = built_in(results.experiment.name);
  return known == nullptr ? std::numeric_limits<int>::max() : known->place;
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

struct ReportOptions {
  std::vector<std::string> folders, arms;
  std::string table = "text", sort_by;
  bool json = false, reproducible = false, save = false;
};

TableFormat format_of(const ReportOptions& options) {
  if (options.json) return TableFormat::json;
  return parse_enum<TableFormat>("table format", options.table);
}

void choose_arms(const Experiment& experiment, const std::vector<std::string>& names,
                 ExperimentSummary& summary) {
  if (names.empty()) return;
  for (const std::string& name : names) (void)experiment.arm(name);
  std::erase_if(summary.arms,
                [&](const ArmSummary& arm) { return std::ranges::find(names, arm.arm) == names.end(); });
}

/// Empties the columns that differ between two runs of the same settings.
void leave_out_machine(ExperimentSummary& summary) {
  for (ArmSummary& arm : summary.arms) {
    for (std::size_t i = 0; i < arm.columns.size(); ++i) {
      const std::string_view key = arm_columns()[i].key;
      if (key == "seconds_per_step" || key == "peak_device_bytes") arm.columns[i].reset();
    }
  }
}

/// Results with their summary.
struct Reported {
  Results results;
  ExperimentSummary summary;
};

struct Readings {
  std::vector<Reported> all;
  std::vector<std::string> errors;  ///< errors of experiments that cannot be read
};

/// Beside the runs: the summary as a run writes it, and the text.
void save(const Results& results, const ExperimentSummary& summary) {
  write_file(results.folder / "summary.json", to_text(to_json(results.experiment, summary)));
  write_file(results.folder / "report.txt", to_table(results.experiment, summary) + "\n");
}

Reported read_one(Results results, const ReportOptions& options) {
  ExperimentSummary summary = summarise(results.experiment, results.folder);
  choose_arms(results.experiment, options.arms, summary);
  if (summary.arms.empty()) {
    const std::string missing = summary.unfinished.empty() ? "" : "; missing: " + missing_runs(summary);
    throw InvalidArgument(printable(results.folder) + ": no run in it is done" + missing);
  }
  if (options.reproducible) leave_out_machine(summary);
  add_findings(results.experiment, results.folder, summary);
  if (options.save) save(results, summary);
  return {std::move(results), std::move(summary)};
}

/// One experiment that cannot be read does not keep the others back.
Readings read_all(const ReportOptions& options) {
  Readings readings;
  for (const std::string& folder : options.folders) {
    for (Results& results : results_in(folder)) {
      try {
        readings.all.push_back(read_one(std::move(results), options));
      } catch (const InvalidArgument& error) {
        readings.errors.emplace_back(error.what());
      }
    }
  }
  return readings;
}

std::string as_text(const std::vector<Reported>& all, const ReportOptions& options) {
  std::string text;
  for (const auto& [results, summary] : all) {
    if (options.folders.size() > 1) text += printable(results.folder) + "\n";
    text += to_table(results.experiment, summary, {output_width(), options.sort_by}) + "\n";
  }
  return text;
}

std::string as_json(const std::vector<Reported>& all) {
  std::string text;
  for (const auto& [results, summary] : all) {
    Json json = to_json(results.experiment, summary);
    json["folder"] = printable(results.folder);
    text += to_line(json) + "\n";
  }
  return text;
}

/// A table with a heading, or in LaTeX a comment, per experiment.
std::string as_sections(const std::vector<Reported>& all, const ReportOptions& options, TableFormat format) {
  std::string text;
  for (const auto& [results, summary] : all) {
    Table table = arm_table(results.experiment, summary, format);
    if (!options.sort_by.empty()) sort_rows(table, options.sort_by);
    const std::string title = escaped(results.experiment.name + ": " + results.experiment.summary);
    text += fmt::format("{} {}\n\n{}\n", format == TableFormat::latex ? "%" : "##", title,
                        write_table(table, {format}));
  }
  return text;
}

/// Settings of `arm` that are not the experiment's own: "steps=60 batch=8".
std::string settings_of(const ExperimentSummary& summary, const std::string& arm) {
  std::string text;
  for (const SettingDifference& difference : summary.settings.differences) {
    const auto& arms = difference.arms;
    if (!arms.empty() && std::ranges::find(arms, arm) == arms.end()) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", difference.key, difference.found);
  }
  return text;
}

/// One table of all results; folder, experiment and settings stand before the arms.
std::string as_csv(const std::vector<Reported>& all, const ReportOptions& options) {
  Table joined{{{"folder", "folder"}, {"experiment", "experiment"}, {"settings", "settings"}}, {}};
  const std::size_t before = joined.columns.size();
  for (const auto& [results, summary] : all) {
    const Table arms = arm_table(results.experiment, summary, TableFormat::csv);
    for (const Column& column : arms.columns) {
      if (std::ranges::find(joined.columns, column.key, &Column::key) == joined.columns.end())
        joined.columns.push_back(column);
    }
    for (const auto& row : arms.rows) {
      joined.rows.push_back(
          {printable(results.folder), results.experiment.name, settings_of(summary, row.front().text)});
      for (std::size_t i = before; i < joined.columns.size(); ++i) {
        const auto found = std::ranges::find(arms.columns, joined.columns[i].key, &Column::key);
        const auto at = static_cast<std::size_t>(found - arms.columns.begin());
        joined.rows.back().push_back(found == arms.columns.end() ? Cell("-", std::monostate{}) : row[at]);
      }
    }
  }
  for (auto& row : joined.rows) row.resize(joined.columns.size(), Cell("-", std::monostate{}));
  if (!options.sort_by.empty()) sort_rows(joined, options.sort_by);
  return write_table(joined, {TableFormat::csv});
}

std::string text_of(const std::vector<Reported>& all, const ReportOptions& options) {
  switch (const TableFormat format = format_of(options)) {
    case TableFormat::json:
      return as_json(all);
    case TableFormat::csv:
      return as_csv(all, options);
    case TableFormat::text:
      return as_text(all, options);
    default:
      return as_sections(all, options, format);
  }
}

void report(const ReportOptions& options) {
  const auto [all, errors] = read_all(options);
  if (!all.empty()) std::cout << text_of(all, options) << std::flush;
  for (const std::string& error : errors) print_error(error);
  if (!errors.empty()) throw Exit{wrong_request};
}

}  // namespace

void add_report_command(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand("report", "the arms of finished experiments side by side");
  command->add_option("DIR", options->folders, "results, or an experiment's folder in them")->required();
  command->add_option("--table", options->table, "text, csv, markdown, latex or json")->capture_default_str();
  command->add_option("--sort", options->sort_by,
                      "key of a column, as --table csv names them: mean, flushed, ...");
  command->add_option("--arms", options->arms, "A,B: only these arms")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_flag(
      "--reproducible", options->reproducible,
      "without times and device memory: the same bytes from any machine and number of processes");
  command
      ->add_flag("--save", options->save,
                 "also write summary.json and report.txt into each experiment's folder")
      ->excludes("--arms", "--reproducible");
  command->add_flag("--json", options->json, "one JSON object per experiment, a line each, on stdout");
  command->callback([options] { report(*options); });
}

}  // namespace halfscope
