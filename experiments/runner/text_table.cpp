// Sets cells into columns.
#include "experiments/runner/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace halfscope {
namespace {

std::string table_line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line = fmt::format("  {:<{}}", cells[0], widths[0]);
  for (std::size_t i = 1; i < cells.size(); ++i) line += fmt::format(" {:>{}}", cells[i], widths[i]);
  return line + "\n";
}

}  // namespace

std::string text_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size() + 1);
  }
  std::string text;
  for (const auto& row : rows) text += table_line(row, widths);
  return text;
}

std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : "-";
}

}  // namespace halfscope
