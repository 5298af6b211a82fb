// Sets cells into columns.
#include "experiments/table/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/table/table.hpp"

namespace halfscope {

std::string text_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]) + 1);
  }
  std::string text;
  for (const auto& row : rows) text += aligned_line(row, widths);
  return text;
}

std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : "-";
}

}  // namespace halfscope
