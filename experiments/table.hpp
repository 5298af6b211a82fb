// Tables of text.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace halfscope {

/// A line per row, indented: cells set to the right in columns as wide as they need, the first to the left.
/// Every row has as many cells as the first.
[[nodiscard]] std::string table(const std::vector<std::vector<std::string>>& rows);

/// "12.3 %" of a share, "-" where there is none.
[[nodiscard]] std::string percent(const std::optional<double>& share);

}  // namespace halfscope
