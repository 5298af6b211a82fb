// A finding of an experiment beside its arms: tables for people, values for programs, sentences for the
// verdict.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <halfscope/io/json/json_lines.hpp>

#include "experiments/table/table.hpp"

namespace halfscope {

/// A heading, lines below it, a table, and a line behind that; each may be empty.
struct Section {
  std::string heading{};
  std::vector<std::string> lines{};
  Table table{};
  std::string note{};
};

struct AnalysisResult {
  std::string key{};                             ///< key of the values in JSON
  std::string analysis{};                        ///< its name
  std::vector<Section> sections{};               ///< drawn in text, JSON and HTML alike
  Json values{};                                 ///< for programs, under the key; null: none
  std::string sentence{};                        ///< for the verdict
  std::map<std::string, std::string> on_arms{};  ///< sentences on single arms
};

/// The rows of a table as objects, by the keys of its columns.
[[nodiscard]] Json rows_json(const Table& table);

/// The sections as text, in lines of `width` columns.
[[nodiscard]] std::string to_text(const AnalysisResult& finding, std::size_t width);

/// The sections for a page: {key, sections: [{heading, lines, columns, rows, note}]}, cells as text.
[[nodiscard]] Json to_json(const AnalysisResult& finding);

}  // namespace halfscope
