// Text of `halfscope updates`: a row for each tensor, and the line about all of them.
#pragma once

#include <string>
#include <vector>

#include "experiments/cli/updates/updates.hpp"
#include "experiments/table/table.hpp"

namespace halfscope {

/// For the terminal: the table and the line below it.
[[nodiscard]] std::string updates_text(const UpdatesRequest& request,
                                       const std::vector<UpdateCounts>& updates, std::size_t width);
/// The table alone, for other programs.
[[nodiscard]] std::string updates_table(const std::vector<UpdateCounts>& updates, TableFormat format);
[[nodiscard]] std::string updates_json(const UpdatesRequest& request,
                                       const std::vector<UpdateCounts>& updates);
/// "lost: 12.00 % of all nonzero updates; ...", of all tensors together.
[[nodiscard]] std::string lost_line(const std::vector<UpdateCounts>& updates);

}  // namespace halfscope
