// Text and JSON of `halfscope formats`.
#pragma once

#include <string>

#include "experiments/cli/formats/format_comparison.hpp"
#include "experiments/table/table.hpp"

namespace halfscope {

/// For the terminal: the cheapest format, sums of each, and the worst `top` tensors by format.
[[nodiscard]] std::string formats_text(const FormatsFound& found, std::size_t top, std::size_t width);
/// A row for each tensor and format, for other programs.
[[nodiscard]] std::string formats_table(const FormatsFound& found, std::size_t top, TableFormat format);
/// One document, of the worst `top` tensors.
[[nodiscard]] std::string formats_json(const FormatsFound& found, std::size_t top);

}  // namespace halfscope
