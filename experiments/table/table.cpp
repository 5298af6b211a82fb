// Tables of the terminal, as wide as it is.
#include "experiments/table/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "experiments/table/table_formats.hpp"

namespace halfscope {
namespace {

constexpr std::size_t indent = 2;
constexpr std::size_t name_columns = 24;  ///< that a name keeps before a column is left out for it

/// Which columns are shown, and how wide each of them is.
struct Layout {
  std::vector<std::size_t> shown;
  std::vector<std::size_t> widths;  ///< widths of all columns

  [[nodiscard]] std::size_t width() const {
    std::size_t sum = indent;
    for (const std::size_t column : shown) sum += widths[column] + (column == 0 ? 0 : 1);
    return sum;
  }
};

Layout natural_layout(const Table& table) {
  Layout layout{std::vector<std::size_t>(table.columns.size()), {}};
  std::iota(layout.shown.begin(), layout.shown.end(), std::size_t{0});
  for (const Column& column : table.columns) layout.widths.push_back(display_width(column.title) + 1);
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      layout.widths[i] = std::max(layout.widths[i], display_width(row[i].text) + 1);
    }
  }
  return layout;
}

/// The fewest columns in which no two names are cut to the same text.
std::size_t name_width(const Table& table, std::size_t natural) {
  std::size_t width = std::min(natural, name_columns);
  const auto are_alike = [&] {
    std::vector<std::string> names;
    for (const auto& row : table.rows) names.push_back(shortened(row[0].text, width - 1));
    std::ranges::sort(names);
    return std::ranges::adjacent_find(names) != names.end();
  };
  while (width < natural && are_alike()) ++width;
  return width;
}

/// Takes columns out until the table fits with names of a readable length; then names get what room there is.
void fit(Layout& layout, const Table& table, std::size_t width) {
  if (layout.width() <= width) return;
  const std::size_t natural = layout.widths[0];
  layout.widths[0] = name_width(table, natural);
  while (layout.width() > width) {
    const auto least = std::max_element(layout.shown.begin(), layout.shown.end(), [&](auto a, auto b) {
      return table.columns[a].left_out < table.columns[b].left_out;
    });
    if (table.columns[*least].left_out == 0) break;
    layout.shown.erase(least);
  }
  if (layout.width() < width) {
    layout.widths[0] = std::min(natural, layout.widths[0] + (width - layout.width()));
  }
}

std::string line_of(const std::vector<std::string>& cells, const Layout& layout) {
  std::vector<std::string> words;
  std::vector<std::size_t> widths;
  for (const std::size_t column : layout.shown) {
    words.push_back(column == 0 ? shortened(cells[0], layout.widths[0] - 1) : cells[column]);
    widths.push_back(layout.widths[column]);
  }
  return aligned_line(words, widths);
}

std::string left_out_line(const Table& table, const Layout& layout, std::size_t width) {
  std::string names;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (std::find(layout.shown.begin(), layout.shown.end(), i) != layout.shown.end()) continue;
    names += (names.empty() ? "" : ", ") + table.columns[i].title;
  }
  if (names.empty()) return "";
  return wrapped("  left out, the terminal is too narrow: " + names, width, "  ") + "\n";
}

std::string as_text(const Table& table, std::size_t width) {
  Layout layout = natural_layout(table);
  fit(layout, table, width);
  std::vector<std::string> cells;
  for (const Column& column : table.columns) cells.push_back(column.title);
  std::string text = line_of(cells, layout);
  for (const auto& row : table.rows) {
    cells.clear();
    for (const Cell& cell : row) cells.push_back(cell.text);
    text += line_of(cells, layout);
  }
  return text + left_out_line(table, layout, width);
}

}  // namespace

Cell count_cell(std::int64_t count) {
  return {fmt::format("{}", count), count};
}

std::string aligned_line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line(indent, ' ');
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string blanks(widths[i] - std::min(widths[i], display_width(cells[i])), ' ');
    line += i == 0 ? cells[i] + blanks : " " + blanks + cells[i];
  }
  return line + "\n";
}

std::string write_table(const Table& table, const TableStyle& style) {
  switch (style.format) {
    case TableFormat::csv:
      return as_csv(table);
    case TableFormat::markdown:
      return as_markdown(table);
    case TableFormat::latex:
      return as_latex(table);
    case TableFormat::json:
      return as_json_lines(table);
    case TableFormat::text:
      break;
  }
  return as_text(table, style.width);
}

}  // namespace halfscope
