// Tables for other programs.
#pragma once

#include <string>

#include "experiments/table/table.hpp"

namespace halfscope {

/// RFC 4180 with lines that end in "\n"; a header of the columns' keys, numbers with all their digits.
[[nodiscard]] std::string as_csv(const Table& table);
/// A pipe table, as GitHub and pandoc read it.
[[nodiscard]] std::string as_markdown(const Table& table);
/// A tabular environment, without packages.
[[nodiscard]] std::string as_latex(const Table& table);
/// An object per row, a line each.
[[nodiscard]] std::string as_json_lines(const Table& table);

}  // namespace halfscope
