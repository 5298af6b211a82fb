// CSV, Markdown, LaTeX and JSON lines, each with its own characters to escape.
#include "experiments/table/table_formats.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <cmath>
#include <type_traits>

#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {
namespace {

std::string quoted_field(std::string_view text) {
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? "\"\"" : std::string(1, c);
  return field + "\"";
}

bool is_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Spreadsheets calculate a text that begins so, whether it is quoted or not.
bool begins_a_formula(std::string_view text) {
  return text.size() > 1 && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos &&
         !is_number(text);
}

/// Quoted as RFC 4180 says; an apostrophe before what would be a formula, as OWASP's "CSV injection" says.
std::string csv_field(std::string_view text) {
  if (begins_a_formula(text)) return quoted_field("'" + std::string(text));
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  return quoted_field(text);
}

std::string csv_value(const Cell& cell) {
  return std::visit(
      [](const auto& value) -> std::string {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::monostate>) return "";
        if constexpr (std::is_same_v<Value, std::string>) return csv_field(value);
        if constexpr (std::is_arithmetic_v<Value>) return fmt::format("{}", value);
      },
      cell.value);
}

/// `text` with `escape_of(c)` in the place of each character for which it is not empty.
template <typename Escape>
std::string with_escapes(std::string_view text, Escape&& escape_of) {
  std::string out;
  for (const char c : text) {
    const std::string_view escape = escape_of(c);
    escape.empty() ? static_cast<void>(out += c) : static_cast<void>(out += escape);
  }
  return out;
}

std::string markdown_text(std::string_view text) {
  return with_escapes(text, [](char c) -> std::string_view {
    switch (c) {
      case '|':
        return "\\|";
      case '*':
        return "\\*";
      case '_':
        return "\\_";
      case '<':
        return "&lt;";
      case '`':
        return "\\`";
      default:
        return "";
    }
  });
}

std::string latex_text(std::string_view text) {
  return with_escapes(text, [](char c) -> std::string_view {
    switch (c) {
      case '_':
        return "\\_";
      case '%':
        return "\\%";
      case '&':
        return "\\&";
      case '#':
        return "\\#";
      case '$':
        return "\\$";
      case '{':
        return "\\{";
      case '}':
        return "\\}";
      case '~':
        return "\\textasciitilde{}";
      case '^':
        return "\\textasciicircum{}";
      case '\\':
        return "\\textbackslash{}";
      case '<':
        return "\\textless{}";
      case '>':
        return "\\textgreater{}";
      default:
        return "";
    }
  });
}

/// The titles, or the texts of a row, each through `write`, between separators.
template <typename Cells, typename Write>
std::string joined(const Cells& cells, std::string_view separator, Write&& write) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += separator;
    line += write(cells[i]);
  }
  return line;
}

Json json_value(const Cell& cell) {
  return std::visit(
      [](const auto& value) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
          return nullptr;
        } else {
          return value;
        }
      },
      cell.value);
}

}  // namespace

std::string as_csv(const Table& table) {
  std::string text =
      joined(table.columns, ",", [](const Column& column) { return csv_field(column.key); }) + "\n";
  for (const auto& row : table.rows) text += joined(row, ",", csv_value) + "\n";
  return text;
}

std::string as_markdown(const Table& table) {
  const auto line = [](const std::string& cells) { return "| " + cells + " |\n"; };
  std::string text =
      line(joined(table.columns, " | ", [](const Column& column) { return markdown_text(column.title); }));
  text += "|---";
  for (std::size_t i = 1; i < table.columns.size(); ++i) text += "|---:";
  text += "|\n";
  for (const auto& row : table.rows) {
    text += line(joined(row, " | ", [](const Cell& cell) { return markdown_text(cell.text); }));
  }
  return text;
}

std::string as_latex(const Table& table) {
  std::string text = fmt::format("\\begin{{tabular}}{{l{}}}\n", std::string(table.columns.size() - 1, 'r'));
  text += joined(table.columns, " & ", [](const Column& column) { return latex_text(column.title); }) +
          " \\\\\n\\hline\n";
  for (const auto& row : table.rows) {
    text += joined(row, " & ", [](const Cell& cell) { return latex_text(cell.text); }) + " \\\\\n";
  }
  return text + "\\end{tabular}\n";
}

std::string as_json_lines(const Table& table) {
  std::string text;
  for (const auto& row : table.rows) {
    Json object = Json::object();
    for (std::size_t i = 0; i < row.size(); ++i) object[table.columns[i].key] = json_value(row[i]);
    text += to_line(object) + "\n";
  }
  return text;
}

}  // namespace halfscope
