// Draws findings.
#include "experiments/results/analysis_result.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/table/text_width.hpp"

namespace halfscope {
namespace {

Json cell_json(const Cell& cell) {
  return std::visit(
      [](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
          return Json();
        } else {
          return Json(value);
        }
      },
      cell.value);
}

std::string indented(const std::string& text, std::size_t width) {
  constexpr std::size_t indent = 2;
  return fmt::format("  {}\n", wrapped(text, width - std::min(width, indent), std::string(indent, ' ')));
}

Json section_json(const Section& section) {
  Json columns = Json::array(), rows = Json::array();
  for (const Column& column : section.table.columns) columns.push_back(column.title);
  for (const auto& row : section.table.rows) {
    Json cells = Json::array();
    for (const Cell& cell : row) cells.push_back(cell.text);
    rows.push_back(std::move(cells));
  }
  return {{"heading", section.heading},
          {"lines", section.lines},
          {"columns", columns},
          {"rows", rows},
          {"note", section.note}};
}

}  // namespace

Json rows_json(const Table& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json object = Json::object();
    for (std::size_t i = 0; i < row.size(); ++i) object[table.columns[i].key] = cell_json(row[i]);
    rows.push_back(std::move(object));
  }
  return rows;
}

std::string to_text(const AnalysisResult& finding, std::size_t width) {
  std::string text;
  for (const Section& section : finding.sections) {
    if (!section.heading.empty()) text += "\n" + indented(section.heading, width);
    for (const std::string& line : section.lines) text += indented(line, width);
    if (!section.table.rows.empty()) text += "\n" + write_table(section.table, {TableFormat::text, width});
    if (!section.note.empty()) text += "\n" + indented(section.note, width);
  }
  return text;
}

Json to_json(const AnalysisResult& finding) {
  Json sections = Json::array();
  for (const Section& section : finding.sections) sections.push_back(section_json(section));
  return {{"key", finding.analysis}, {"sections", sections}};
}

}  // namespace halfscope
