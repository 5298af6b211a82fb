// Tables of the terminal.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace halfscope {

/// Rows of as many cells each, under each other: the first cell to the left, the others to the right.
[[nodiscard]] std::string text_table(const std::vector<std::vector<std::string>>& rows);

/// "12.3 %" of a share, "-" where there is none.
[[nodiscard]] std::string percent(const std::optional<double>& share);

}  // namespace halfscope
