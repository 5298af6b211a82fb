// Tables for people and for programs: one set of columns and rows, written as text, CSV, Markdown, LaTeX or
// JSON lines.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <halfscope/core/names.hpp>

#include "experiments/table/text_width.hpp"

namespace halfscope {

enum class TableFormat : std::uint8_t { text, csv, markdown, latex, json };
template <>
inline constexpr std::array<std::string_view, 5> enum_names<TableFormat>{"text", "csv", "markdown", "latex",
                                                                         "json"};

/// A cell: `text` for people, `value` for programs. The value of nothing is empty in CSV and null in JSON.
struct Cell {
  using Value = std::variant<std::monostate, std::int64_t, double, std::string>;

  Cell(std::string words) : text(words), value(std::move(words)) {}  // NOLINT: a text is a cell
  Cell(const char* words) : Cell(std::string(words)) {}              // NOLINT: a text is a cell
  Cell(std::string words, Value number) : text(std::move(words)), value(std::move(number)) {}

  std::string text;
  Value value;
};

/// An integer that is printed in full.
[[nodiscard]] Cell count_cell(std::int64_t count);

struct Column {
  std::string key;    ///< key in CSV and JSON
  std::string title;  ///< heading in the other formats
  int left_out = 0;   ///< 0: never; above 0: the highest goes first in too narrow a terminal
};

/// Rows of as many cells as there are columns. The first column stands to the left, the others to the right.
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};

struct TableStyle {
  TableFormat format = TableFormat::text;
  std::size_t width = any_width;  ///< characters in a row of text; the other formats hold everything
};

/// The table; text ends with a line that names the columns that were left out. Names and words are escaped
/// for the format; those of text must have been (`escaped`).
[[nodiscard]] std::string write_table(const Table& table, const TableStyle& style);

/// A line of a table of the terminal: the first cell to the left, the others to the right of their columns.
[[nodiscard]] std::string aligned_line(const std::vector<std::string>& cells,
                                       const std::vector<std::size_t>& widths);

}  // namespace halfscope
