// halfscope compare: two folders of results, run by run.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include <halfscope/core/escape.hpp>
#include <halfscope/io/file.hpp>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/exit_status.hpp"
#include "experiments/results/compare_runs.hpp"
#include "experiments/table/table.hpp"

namespace halfscope {
namespace {

namespace fs = std::filesystem;

struct CompareOptions {
  std::string first, second;
  bool json = false;
};

/// Version, compiler and machine of the first run that both folders have, or else of the first of `only`.
Json environment_of(const fs::path& folder, const ResultsComparison& comparison,
                    const std::vector<std::string>& only) {
  if (comparison.runs.empty() && only.empty()) return Json::object();
  const std::string& run = comparison.runs.empty() ? only.front() : comparison.runs.front().run;
  const fs::path path = folder / run / "environment.json";
  Json found = Json::object();
  if (!fs::exists(path)) return found;
  const Json environment = read_json(path);
  for (const char* key : {"version", "git_revision", "compiler", "cpu", "gpu"})
    found[key] = environment.is_object() ? environment.value(key, Json()) : Json();
  return found;
}

Json json_of(const ValueDifference& difference) {
  return {{"key", difference.key}, {"first", difference.first}, {"second", difference.second}};
}

Json json_of(const std::vector<ValueDifference>& differences) {
  Json list = Json::array();
  for (const ValueDifference& difference : differences) list.push_back(json_of(difference));
  return list;
}

Json json_of(const RunComparison& run) {
  Json records;
  if (run.records) {
    records = json_of(run.records->value);
    records["file"] = run.records->file;
    records["line"] = run.records->line;
    records["step"] = run.records->step ? Json(*run.records->step) : Json();
  }
  return {{"run", run.run},
          {"same", run.is_same()},
          {"settings", json_of(run.settings)},
          {"first_difference", records},
          {"results", json_of(run.results)}};
}

std::string text_of(const Json& value) {
  return value.is_null() ? "nothing" : shortened(escaped(to_line(value)), 40);
}

/// Two digits, or all before the point: "0.34", "17", "245".
std::string percents(double share) {
  constexpr double most_in_full = 1e6;
  return share < 10 || share >= most_in_full ? fmt::format("{:.2g}", share) : fmt::format("{:.0f}", share);
}

/// "12 | 14 (by 17 %)".
std::string text_of(const ValueDifference& difference) {
  std::string text =
      fmt::format("{} {} | {}", difference.key, text_of(difference.first), text_of(difference.second));
  if (!difference.first.is_number() || !difference.second.is_number()) return text;
  const auto one = difference.first.get<double>(), other = difference.second.get<double>();
  if (one != 0) text += fmt::format(" (by {} %)", percents(100 * std::fabs(other / one - 1)));
  return text;
}

std::string place_of(const RecordDifference& records) {
  if (records.step) return fmt::format("step {}", *records.step);
  return fmt::format("line {}", records.line);
}

std::string lines_of(const RunComparison& run) {
  std::string text = fmt::format("{}: {}\n", escaped(run.run), run.is_same() ? "the same" : "different");
  for (const ValueDifference& difference : run.settings)
    text += fmt::format("  setting {}\n", text_of(difference));
  if (run.records) {
    text += fmt::format("  {}, first at {}: {}\n", run.records->file, place_of(*run.records),
                        text_of(run.records->value));
  }
  for (const ValueDifference& difference : run.results)
    text += fmt::format("  result {}\n", text_of(difference));
  return text;
}

std::string machine_line(std::string_view folder, const Json& environment) {
  const auto word = [&](const char* key) {
    const Json value = environment.value(key, Json());
    return value.is_string() ? escaped(value.get<std::string>()) : std::string("unknown");
  };
  return fmt::format("{}: revision {}, {}\n", escaped(folder), word("git_revision"), word("cpu"));
}

std::int64_t count_same(const ResultsComparison& comparison) {
  return std::ranges::count_if(comparison.runs, &RunComparison::is_same);
}

std::string report(const CompareOptions& options, const ResultsComparison& comparison) {
  std::string text =
      machine_line(options.first, environment_of(options.first, comparison, comparison.only_first)) +
      machine_line(options.second, environment_of(options.second, comparison, comparison.only_second)) + "\n";
  for (const RunComparison& run : comparison.runs) text += lines_of(run);
  for (const std::string& run : comparison.only_first)
    text += fmt::format("{}: only in {}\n", escaped(run), escaped(options.first));
  for (const std::string& run : comparison.only_second)
    text += fmt::format("{}: only in {}\n", escaped(run), escaped(options.second));
  return text + fmt::format("\n{} of {} runs are the same\n", count_same(comparison), comparison.runs.size());
}

Json json_report(const CompareOptions& options, const ResultsComparison& comparison) {
  Json runs = Json::array();
  for (const RunComparison& run : comparison.runs) runs.push_back(json_of(run));
  return {{"first", environment_of(options.first, comparison, comparison.only_first)},
          {"second", environment_of(options.second, comparison, comparison.only_second)},
          {"runs", runs},
          {"only_first", comparison.only_first},
          {"only_second", comparison.only_second}};
}

void compare(const CompareOptions& options) {
  const ResultsComparison comparison = compare_results(options.first, options.second);
  std::cout << (options.json ? to_text(json_report(options, comparison)) : report(options, comparison))
            << std::flush;
  const bool is_same = count_same(comparison) == std::ssize(comparison.runs) &&
                       comparison.only_first.empty() && comparison.only_second.empty();
  if (!is_same) throw Exit{found_something};
}

}  // namespace

void add_compare_command(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command =
      app.add_subcommand("compare", "two folders of results: which runs differ, where first, by how much");
  command->add_option("FIRST", options->first, "results, an experiment's folder in them, or an arm's")
      ->required();
  command->add_option("SECOND", options->second, "the other ones")->required();
  command->add_flag("--json", options->json, "as JSON on stdout");
  command->callback([options] { compare(*options); });
}

}  // namespace halfscope
