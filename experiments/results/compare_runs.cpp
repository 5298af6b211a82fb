// Walks two folders of results, and compares file by file.
#include "experiments/results/compare_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

#include <halfscope/core/error.hpp>
#include <halfscope/io/file.hpp>

#include "sim/train/recorded_keys.hpp"

namespace halfscope {
namespace {

namespace fs = std::filesystem;

/// Depend on the machine, not on the numbers.
constexpr std::array<std::string_view, 5> of_the_machine{"data", "device", "seconds", "seconds_per_step",
                                                         "peak_device_bytes"};

/// Either is in no other folder.
constexpr std::array<std::string_view, 2> files_of_a_run{"config.json", "metrics.jsonl"};

/// Missing from the records of earlier versions.
constexpr std::string_view later_key = "memory";

/// Folders of runs below `folder`, relative to it, sorted.
std::vector<std::string> runs_below(const fs::path& folder) {
  if (!fs::is_directory(folder)) throw InvalidArgument(printable(folder) + ": no such folder of results");
  std::vector<std::string> runs;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (std::ranges::find(files_of_a_run, entry.path().filename()) != files_of_a_run.end())
      runs.push_back(entry.path().parent_path().lexically_relative(folder).generic_string());
  }
  if (runs.empty())
    throw InvalidArgument(printable(folder) + ": no run in it; give what 'halfscope run' had as --out");
  std::ranges::sort(runs);
  runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
  return runs;
}

/// Keys of either object that the other has not, or has differently; members of objects in them are
/// "KEY.MEMBER".
void add_differences(std::vector<ValueDifference>& all, const Json& first, const Json& second,
                     const std::string& prefix = "") {
  const auto note = [&](const std::string& key) {
    const Json one = first.value(key, Json()), other = second.value(key, Json());
    if (one == other || std::ranges::find(of_the_machine, key) != of_the_machine.end()) return;
    if (key == later_key && (one.is_null() || other.is_null())) return;
    if (one.is_object() && other.is_object()) {
      add_differences(all, one, other, prefix + key + ".");
    } else {
      all.push_back({prefix + key, one, other});
    }
  };
  for (const auto& [key, value] : first.items()) note(key);
  for (const auto& [key, value] : second.items()) {
    if (!first.contains(key)) note(key);
  }
}

Json read_object(const fs::path& path) {
  if (!fs::exists(path)) return Json::object();
  Json json = read_json(path);
  if (!json.is_object()) throw InvalidArgument(printable(path) + ": expected a JSON object");
  return json;
}

std::optional<std::int64_t> step_of(const Json& record) {
  const auto step = record.is_object() ? record.find("step") : record.end();
  return step != record.end() && is_integer(*step) ? std::optional(step->get<std::int64_t>()) : std::nullopt;
}

Json parsed_line(const std::string& text, const fs::path& path, std::size_t line) {
  return text.empty() ? Json() : parse_json(text, fmt::format("{}: line {}", printable(path), line));
}

/// Lines that differ in bytes and not in values do not count.
std::optional<RecordDifference> record_difference(const fs::path& first, const fs::path& second) {
  std::ifstream one(first), other(second);
  for (std::size_t line = 1; one || other; ++line) {
    std::string left, right;
    std::getline(one, left);
    std::getline(other, right);
    if (left == right) continue;
    const Json record = parsed_line(left, first, line), opposite = parsed_line(right, second, line);
    if (auto value = first_difference(record, opposite)) {
      const std::optional<std::int64_t> step = step_of(record) ? step_of(record) : step_of(opposite);
      return RecordDifference{first.filename().string(), line, step, *std::move(value)};
    }
  }
  return std::nullopt;
}

/// One difference where a run has lost its settings.
std::vector<ValueDifference> setting_differences(const fs::path& first, const fs::path& second) {
  const bool has_first = fs::exists(first), has_second = fs::exists(second);
  if (has_first != has_second)
    return {{"file config.json", has_first ? Json("there") : Json(), has_second ? Json("there") : Json()}};
  std::vector<ValueDifference> differences;
  add_differences(differences, settings_of(read_object(first)), settings_of(read_object(second)));
  return differences;
}

RunComparison compare_run(const std::string& run, const fs::path& first, const fs::path& second) {
  RunComparison comparison{.run = run};
  comparison.settings = setting_differences(first / "config.json", second / "config.json");
  for (const char* file : {"metrics.jsonl", "histograms.jsonl"}) {
    if (!comparison.records) comparison.records = record_difference(first / file, second / file);
  }
  add_differences(comparison.results, read_object(first / "summary.json"),
                  read_object(second / "summary.json"));
  return comparison;
}

std::string joined(const std::string& where, const std::string& key) {
  return where.empty() || key.starts_with('[') ? where + key : where + "." + key;
}

/// `difference` of what stands at `key`.
std::optional<ValueDifference> below(const std::string& key, std::optional<ValueDifference> difference) {
  if (difference) difference->key = difference->key.empty() ? key : joined(key, difference->key);
  return difference;
}

std::optional<ValueDifference> difference_of_objects(const Json& first, const Json& second) {
  for (const auto& [key, value] : first.items()) {
    if (!second.contains(key)) return ValueDifference{key, value, Json()};
    if (auto found = below(key, first_difference(value, second[key]))) return found;
  }
  for (const auto& [key, value] : second.items()) {
    if (!first.contains(key)) return ValueDifference{key, Json(), value};
  }
  return std::nullopt;
}

std::optional<ValueDifference> difference_of_arrays(const Json& first, const Json& second) {
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    const std::string key = fmt::format("[{}]", i);
    if (i >= first.size()) return ValueDifference{key, Json(), second[i]};
    if (i >= second.size()) return ValueDifference{key, first[i], Json()};
    if (auto found = below(key, first_difference(first[i], second[i]))) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ValueDifference> first_difference(const Json& first, const Json& second) {
  if (first == second) return std::nullopt;
  if (first.is_object() && second.is_object()) return difference_of_objects(first, second);
  if (first.is_array() && second.is_array()) return difference_of_arrays(first, second);
  return ValueDifference{"", first, second};
}

ResultsComparison compare_results(const fs::path& first, const fs::path& second) {
  const std::vector<std::string> ours = runs_below(first), theirs = runs_below(second);
  ResultsComparison comparison;
  std::vector<std::string> common;
  std::ranges::set_intersection(ours, theirs, std::back_inserter(common));
  std::ranges::set_difference(ours, theirs, std::back_inserter(comparison.only_first));
  std::ranges::set_difference(theirs, ours, std::back_inserter(comparison.only_second));
  for (const std::string& run : common)
    comparison.runs.push_back(compare_run(run, first / run, second / run));
  return comparison;
}

}  // namespace halfscope
