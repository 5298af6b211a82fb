// Two folders of results side by side: which runs differ, where first, and by how much in the end.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {

/// A value that two files have differently; null in a file that lacks it.
struct ValueDifference {
  std::string key;  ///< "loss", "tensors[3].flushed"
  Json first, second;
};

/// The first line in which two files of records differ.
struct RecordDifference {
  std::string file;                  ///< metrics.jsonl or histograms.jsonl
  std::size_t line = 0;              ///< from 1
  std::optional<std::int64_t> step;  ///< the record's step
  ValueDifference value;
};

struct RunComparison {
  std::string run;                          ///< its folder below both, "master-copy/fp32/seed0"
  std::vector<ValueDifference> settings{};  ///< differences in config.json, but for the data's folder
  std::optional<RecordDifference> records{};
  std::vector<ValueDifference> results{};  ///< differences in summary.json, but for times and memory

  [[nodiscard]] bool is_same() const { return settings.empty() && !records && results.empty(); }
};

struct ResultsComparison {
  std::vector<RunComparison> runs;  ///< in both folders, by name
  std::vector<std::string> only_first, only_second;
};

/// Compares the runs below `first` and `second`, which are known by their config.json. Throws InvalidArgument
/// where one is no folder or holds no run, and for files that are no JSON.
[[nodiscard]] ResultsComparison compare_results(const std::filesystem::path& first,
                                                const std::filesystem::path& second);

/// The first value in which `first` and `second` differ; nothing where they are equal.
[[nodiscard]] std::optional<ValueDifference> first_difference(const Json& first, const Json& second);

}  // namespace halfscope
